"""From a seed to a program for several processes: DDP, FSDP, FSDP2, tensor parallel, or gradients added up by hand.

The reference is the same program as one process on the CPU with all rows of the batch, without any of these wrappers.
Each rank has as many rows as the others, so the mean of the ranks' gradients is the gradient of the whole batch.
"""

from __future__ import annotations

from differential.dice import Dice
from differential.program import Program, block

NET = '''
class Block(nn.Module):
    """A residual block; `up` and `down` can be cut for tensor parallel."""

    def __init__(self, attends, norm):
        super().__init__()
        self.norm = norm
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True) if attends else None
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        y = self.norm(x)
        if self.attention is not None:
            y = y + self.attention(y, y, y, need_weights=False)[0]
        return x + self.down(ACTIVATION(self.up(y)))


class Net(nn.Module):
    """Rows (n, 4, 8) to classes (n, 4, 3), or from numbers (n, 4)."""

    def __init__(self, blocks):
        super().__init__()
        self.words = nn.Embedding(9, 8)
        self.blocks = nn.ModuleList(blocks)
        self.head = nn.Linear(8, 3)

    def forward(self, codes):
        x = self.words(codes)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if CHECKPOINTS else block(x)
        return self.head(x)
'''
NOTE = '''
def whole(value):
    """All of a tensor, of which each rank may have a part; what a process adds to it later is not seen in it."""
    if isinstance(value, DTensor):
        value = value.full_tensor()
    return value.detach().cpu().clone() if isinstance(value, torch.Tensor) else value


def note(record, step, net, gradients=True):
    """Record the parameters, buffers and gradients under the names that they have without a wrapper."""
    for name, p in net.named_parameters():
        short = name.replace("module.", "").replace("_fsdp_wrapped_module.", "")
        record(f"{step} {short}", whole(p))
        if gradients:
            record(f"{step} {short}.grad", whole(p.grad))
    for name, b in net.named_buffers():
        record(f"{step} {name.replace('module.', '')}", whole(b))
'''
MAIN = """
if __name__ == "__main__":  # python -m vgpu --gpus 2 -m torch.distributed.run --nproc-per-node 2 FILE
    RANK, RANKS = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if RANKS > 1:
        torch.cuda.set_device(RANK)
        dist.init_process_group("cpu:gloo,cuda:nccl")
    program(RANK, RANKS, torch.device("cuda", RANK) if RANKS > 1 else torch.device("cpu"), print)
"""
IMPORTS = """import contextlib
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffload, CPUOffloadPolicy, FullyShardedDataParallel, ShardingStrategy, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
"""
WAYS = ("DDP", "DDP", "FSDP1", "FSDP1 offloaded", "FSDP2", "FSDP2", "tensor parallel", "by hand")
OPTIMIZERS = (  # with the `eps` of steps.py, for the reason given there
    "torch.optim.SGD(net.parameters(), lr=0.1{more})",
    "torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9{more})",
    "torch.optim.AdamW(net.parameters(), lr=0.01, eps=1e-6{more})",
    "torch.optim.Adam(net.parameters(), lr=0.01, eps=1e-6, amsgrad=True{more})",
    "torch.optim.RMSprop(net.parameters(), lr=0.01, eps=1e-6{more})",
)
BY_HAND = (
    # all gradients, one after the other
    """for p in net.parameters():
    dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)""",
    # a part of the sum to each rank, and back
    """flat = torch.cat([p.grad.flatten() for p in net.parameters()])
flat = torch.cat([flat, flat.new_zeros(-len(flat) % ranks)])
part = flat.new_empty(len(flat) // ranks)
dist.reduce_scatter_tensor(part, flat)
dist.all_gather_into_tensor(flat, part / ranks)
start = 0
for p in net.parameters():
    p.grad.copy_(flat[start : start + p.numel()].view_as(p))
    start += p.numel()""",
    # everybody's, added up here
    """for p in net.parameters():
    parts = [torch.empty_like(p.grad) for _ in range(ranks)]
    dist.all_gather(parts, p.grad)
    p.grad = torch.stack(parts).mean(0)""",
    # to rank 0 and from there
    """for p in net.parameters():
    work = dist.reduce(p.grad, dst=0, async_op=True)
    work.wait()
    p.grad.div_(ranks)
    dist.broadcast(p.grad, src=0)""",
    # rows of a table change places twice
    """for p in net.parameters():
    sent = torch.stack([p.grad.flatten() / ranks] * ranks)
    came = torch.empty_like(sent)
    dist.all_to_all_single(came, sent)
    p.grad = came.sum(0).view_as(p)""",
    # two and two
    """for p in net.parameters():
    mine, theirs = p.grad.clone(), torch.empty_like(p.grad)
    dist_works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, mine, (rank + 1) % ranks), dist.P2POp(dist.irecv, theirs, (rank - 1) % ranks)]
    )
    for work in dist_works:
        work.wait()
    p.grad = (mine + theirs) / 2""",
)


class _Draft:
    """A program while it is drawn."""

    def __init__(self, seed: int, ranks: int) -> None:
        self.dice, self.seed, self.ranks = Dice(f"{seed} {ranks}"), seed, ranks
        self.pieces, self.chance = self.dice.pieces, self.dice.chance

    def program(self) -> Program:
        ways = [way for way in WAYS if self.ranks == 2 or way != "by hand"]
        self.way = self.dice.choice(ways)
        self.pieces.add(self.way)
        checkpoints = self.way != "tensor parallel" and self.chance(0.25, "checkpoint")
        body = self._body(checkpoints)
        activation = self.dice.choice(("F.relu", "F.gelu", "torch.tanh"))
        title = f'"""Program {self.seed} for {self.ranks} ranks: {", ".join(sorted(self.pieces))}."""'
        constants = f"ACTIVATION, CHECKPOINTS = {activation}, {checkpoints}"
        source = f"{title}\n\n{IMPORTS}\n{constants}\n\n{NET}\n{NOTE}\n\n{body}\n{MAIN}"
        return Program(self.seed, self.ranks, frozenset(self.pieces), True, source)

    def _body(self, checkpoints: bool) -> str:
        blocks = [self._block(checkpoints) for _ in range(self.dice.number(1, 3))]
        more = self.dice.choice(("", "", ", foreach=True", ", foreach=False"))
        if self.way == "tensor parallel":
            more = ", foreach=False"  # some of its parameters are DTensors, some are not
        self.pieces.add(f"optimizer{more}")
        optimizer = self.dice.choice(OPTIMIZERS).format(more=more)
        setup = [
            f"torch.manual_seed({self.seed})",
            f"net = Net([{', '.join(blocks)}]).double()",
        ]
        if self.way in ("DDP", "FSDP2") and self.chance(0.2, "frozen"):
            setup.append("net.words.requires_grad_(False)")
        setup += ["keep_sync = contextlib.nullcontext", *self._wrap()]
        if self.way == "DDP" and self.chance(0.2, "ZeroRedundancyOptimizer"):
            kind, _, options = optimizer.partition("(net.parameters(), ")
            zero = f"ZeroRedundancyOptimizer(net.parameters(), optimizer_class={kind}, {options}"
            setup.append(f"optimizer = {zero} if ranks > 1 else {optimizer}")
        else:
            setup.append(f"optimizer = {optimizer}")
        return f"def program(rank, ranks, gpu, record):\n{block([*setup, *self._loop()], 1)}\n"

    def _block(self, checkpoints: bool) -> str:
        attends = self.way != "tensor parallel" and self.chance(0.4, "attention")
        norm = "nn.LayerNorm(8)"
        # DDP sends rank 0's buffers; under a checkpoint they would be written twice.
        if self.way == "DDP" and not checkpoints and self.chance(0.4, "SyncBatchNorm"):
            norm = "nn.BatchNorm1d(4)"  # over the four places of a row
        return f"Block({attends}, {norm})"

    def _wrap(self) -> list[str]:
        """Lines that spread `net`, where there are several ranks."""
        if self.way == "DDP":
            lines = ["net = nn.SyncBatchNorm.convert_sync_batchnorm(net)"] if "SyncBatchNorm" in self.pieces else []
            options = ["device_ids=[gpu]"]
            if self.chance(0.3, "views of buckets"):
                options.append("gradient_as_bucket_view=True")
            if self.chance(0.3, "small buckets"):
                options.append("bucket_cap_mb=0.0005")
            if self.chance(0.2, "unused"):
                options.append("find_unused_parameters=True")
            lines += [
                "net = DistributedDataParallel(net.to(gpu), " + ", ".join(options) + ")",
                "keep_sync = net.no_sync",
            ]
        elif self.way.startswith("FSDP1"):
            options = ["auto_wrap_policy=ModuleWrapPolicy({Block})", "device_id=rank"]
            options.append(f"use_orig_params={self.chance(0.5, 'original parameters')}")
            strategy = self.dice.choice(("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD"))
            if self.way == "FSDP1 offloaded":
                strategy = "FULL_SHARD"
                options.append("cpu_offload=CPUOffload(offload_params=True)")
            options.append(f"sharding_strategy=ShardingStrategy.{strategy}")
            self.pieces.add(strategy)
            lines = ["net = FullyShardedDataParallel(net, " + ", ".join(options) + ")"]
        elif self.way == "FSDP2":
            options = f"mesh=mesh, reshard_after_forward={self.chance(0.6, 'resharded')}"
            lines = ['mesh = init_device_mesh("cuda", (ranks,))']
            if self.chance(0.3, "FSDP2 offloaded"):
                options += ", offload_policy=CPUOffloadPolicy()"
            else:
                lines.append("net.to(gpu)")
            lines += [f"for one in net.blocks:\n    fully_shard(one, {options})", f"fully_shard(net, {options})"]
        elif self.way == "tensor parallel":
            lines = [
                'mesh = init_device_mesh("cuda", (ranks,))',
                "net.to(gpu)",
                "for one in net.blocks:",
                '    parallelize_module(one, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})',
            ]
        else:
            lines = ["net.to(gpu)"]
        return ["if ranks > 1:", block(lines, 1)]

    def _loop(self) -> list[str]:
        rows = (
            "codes, wanted" if self.way == "tensor parallel" else "codes.chunk(ranks)[rank], wanted.chunk(ranks)[rank]"
        )
        loss = [
            f"x, y = (t.to(gpu) for t in ({rows}))",
            "loss = F.cross_entropy(net(x).flatten(0, 1), y.flatten())",
        ]
        makes = [
            "source = torch.Generator().manual_seed(1000 + step)",
            f"codes = torch.randint(9, ({4 * self.ranks}, 4), generator=source)",
            f"wanted = torch.randint(3, ({4 * self.ranks}, 4), generator=source)",
        ]
        zero = self.dice.choice(("optimizer.zero_grad()", "optimizer.zero_grad(set_to_none=False)"))
        if self.way == "FSDP1 offloaded":
            zero = "optimizer.zero_grad()"
        lines = [*makes, zero]
        if self.chance(0.25, "evaluated before"):
            mode = "no_grad" if self.way.startswith("FSDP") else self.dice.choice(("no_grad", "inference_mode"))
            lines += ["net.eval()", f"with torch.{mode}():", "    net(codes[:4].to(gpu))", "net.train()"]
        if self.way == "DDP" and self.chance(0.4, "accumulation, no_sync"):
            lines += ["with keep_sync():", block([*loss, "loss.backward()", "codes = codes.flip(1)"], 1)]
        elif self.way not in ("tensor parallel", "FSDP1 offloaded") and self.chance(0.2, "accumulation"):
            # (FSDP1 that offloads takes the last gradient instead of the sum, as its documentation says.)
            lines += [*loss, "loss.backward()"]
        lines += [*loss, "loss.backward()"]
        if self.way == "by hand":
            lines += ["if ranks > 1:", block([self._by_hand()], 1)]
        if self.way == "tensor parallel":
            lines.append("record(f'{step} loss', whole(loss))")
        else:
            lines += [
                "total = loss.detach().clone()",
                "if ranks > 1:",
                "    dist.all_reduce(total)",
                "record(f'{step} loss', whole(total / ranks))",
            ]
        # FSDP1 computes norms in float32 only, and those of DTensors and of others cannot be put together.
        if self.way in ("DDP", "FSDP2", "by hand") and self.chance(0.4, "clip"):
            lines.append("norm = nn.utils.clip_grad_norm_(net.parameters(), 0.1)")
            lines.append("record(f'{step} norm', whole(norm))")
        lines.append("optimizer.step()")
        if self.way.startswith("FSDP1"):
            lines += [
                "full = FullyShardedDataParallel.summon_full_params(net) if ranks > 1 else contextlib.nullcontext()",
                "with full:",
                "    note(record, step, net, gradients=False)",
            ]
        else:
            lines.append("note(record, step, net)")
        return ["for step in range(3):", block(lines, 1)]

    def _by_hand(self) -> str:
        return self.dice.choice(BY_HAND)


def draw(seed: int, ranks: int) -> Program:
    """The program of a seed for that many ranks."""
    return _Draft(seed, ranks).program()
