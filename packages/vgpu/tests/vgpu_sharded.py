"""What the ranks of test_vgpu_sharded.py do: importable by name in the child, compared with one process on the CPU."""

import copy
import tempfile
from collections.abc import Callable

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor import rand as dtensor_rand
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

STEPS = 3


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(self.up(self.norm(x)).relu())


class Net(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(2))
        self.head = nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def new_net() -> Net:
    torch.manual_seed(0)
    return Net()


def batches() -> list[Tensor]:
    return [torch.randn(8, 4, 8, generator=torch.Generator().manual_seed(k)) for k in range(STEPS)]


def train(net: nn.Module, rows: Callable[[Tensor], Tensor], clip: float | None = None, **options: bool) -> nn.Module:
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2, **options)
    for batch in batches():
        optimizer.zero_grad()
        net(rows(batch)).square().mean().backward()
        if clip:
            nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimizer.step()
    return net


def whole(parameter: Tensor) -> Tensor:
    return (parameter.full_tensor() if isinstance(parameter, DTensor) else parameter).detach().cpu()


def same(net: nn.Module, reference: nn.Module, tolerance: float = 1e-6) -> None:
    for (name, p), q in zip(net.named_parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(
            whole(p), q.detach(), rtol=0, atol=tolerance, msg=lambda text, n=name: f"{n}: {text}"
        )


def sharded(net: Net, **options: object) -> Net:
    for block in net.blocks:
        fully_shard(block, **options)
    return fully_shard(net, **options)


def own_rows(rank: int, ranks: int = 2) -> Callable[[Tensor], Tensor]:
    return lambda batch: batch.chunk(ranks)[rank].cuda()


def fsdp2(rank: int) -> None:
    """`fully_shard` in its ways, each against one process."""
    rows, reference = own_rows(rank), train(new_net(), lambda batch: batch)
    same(train(sharded(new_net().cuda()), rows), reference)
    same(train(sharded(new_net().cuda()), rows, foreach=False), reference)
    same(train(sharded(new_net().cuda()), rows, clip=0.01), train(new_net(), lambda batch: batch, clip=0.01))
    with torch.device("meta"):
        bare = sharded(Net())
    bare.to_empty(device="cuda")
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_model_state_dict(bare, new_net().state_dict() if rank == 0 else {}, options=options)
    same(train(bare, rows), reference)
    offloaded = train(sharded(new_net(), offload_policy=CPUOffloadPolicy()), rows)
    assert all(p.device.type == "cpu" for p in offloaded.parameters())
    same(offloaded, reference)
    ahead = sharded(new_net().cuda(), reshard_after_forward=False)
    ahead.blocks[0].set_modules_to_forward_prefetch([ahead.blocks[1]])
    ahead.blocks[1].set_modules_to_backward_prefetch([ahead.blocks[0]])
    ahead.unshard(async_op=True)
    same(train(ahead, rows), reference)
    assert isinstance(ahead.head.weight, DTensor) and ahead.head.weight.to_local().device == torch.device("cuda", rank)


def mixed_precision(rank: int) -> None:
    """bfloat16 for what is computed, float32 for what is added up: the gradients of two halves by hand."""
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    net = train(sharded(new_net().cuda(), mp_policy=policy), own_rows(rank))
    assert net.head.weight.dtype == torch.float32
    reference = new_net()
    optimizer = torch.optim.AdamW(reference.parameters(), lr=1e-2)
    for batch in batches():
        halves = []
        for half in batch.chunk(2):
            low = copy.deepcopy(reference).bfloat16()
            low.zero_grad()
            low(half.bfloat16()).square().mean().backward()
            halves.append([p.grad.float() for p in low.parameters()])
        for p, *grads in zip(reference.parameters(), *halves, strict=True):
            p.grad = sum(grads) / 2
        optimizer.step()
    same(net, reference)


def tensors(rank: int) -> None:
    """DTensor itself: placements, products, gradients, random numbers."""
    mesh = init_device_mesh("cuda", (2,))
    x = torch.arange(24.0).view(8, 3)
    rows = distribute_tensor(x.cuda(), mesh, [Shard(0)])
    assert rows.to_local().device == torch.device("cuda", rank) and rows.device.type == "cuda"
    for placement in (Replicate(), Shard(1)):
        assert rows.redistribute(mesh, [placement]).full_tensor().cpu().equal(x)
    weight = distribute_tensor(torch.ones(3, 4, device="cuda"), mesh, [Replicate()]).requires_grad_()
    out = (rows @ weight).sum()
    out.backward()
    assert out.full_tensor().item() == x.sum().item() * 4
    assert whole(weight.grad).equal(x.sum(0)[:, None].expand(3, 4))
    torch.manual_seed(5)
    drawn = dtensor_rand(8, 3, device_mesh=mesh, placements=[Shard(0)])
    values = whole(drawn)
    assert len(values.unique()) == 24, "each rank draws numbers of its own"
    same_everywhere = torch.rand(4, device="cuda")
    other = same_everywhere.clone()
    dist.broadcast(other, 0)
    assert other.equal(same_everywhere), "the generators of the ranks have gone the same way"
    dropped = torch.nn.functional.dropout(distribute_tensor(torch.ones(64, 4).cuda(), mesh, [Shard(0)]))
    assert set(whole(dropped).unique().tolist()) == {0.0, 2.0}
    assert not whole(dropped)[:32].equal(whole(dropped)[32:])


def tensor_parallel(rank: int) -> None:
    """Linear layers cut by columns and rows; the norms by the sequence; under autocast, too."""
    mesh = init_device_mesh("cuda", (2,))
    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    net, reference = new_net().cuda(), train(new_net(), lambda batch: batch)
    for block in net.blocks:
        parallelize_module(block, mesh, plan)
    same(train(net, lambda batch: batch.cuda(), foreach=False), reference)
    torch.manual_seed(0)
    block = Block(8).cuda()
    expected = copy.deepcopy(block).cpu()
    parallelize_module(block.norm, mesh, SequenceParallel())
    x = batches()[0]
    y = block.norm(distribute_tensor(x.cuda(), mesh, [Shard(1)]))
    y.square().sum().backward()
    expected.norm(x).square().sum().backward()
    torch.testing.assert_close(whole(y), expected.norm(x).detach())
    torch.testing.assert_close(whole(block.norm.weight.grad), expected.norm.weight.grad)


def autocast(rank: int) -> None:
    """Autocast casts DTensors as it casts the tensors inside them."""
    mesh = init_device_mesh("cuda", (2,))
    net, reference = new_net().cuda(), new_net().cuda()
    for block in net.blocks:
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    x = batches()[0].cuda()
    with torch.autocast("cuda", torch.bfloat16):
        out, expected = net(x), reference(x)
        weight = net.blocks[0].up.weight
        assert torch.nn.functional.linear(weight, weight).dtype == torch.bfloat16 == out.dtype
        assert weight.exp().dtype == torch.float32 and weight.sum().dtype == torch.float32
    torch.testing.assert_close(out.float(), expected.float(), rtol=0, atol=0.05)
    out.float().square().mean().backward()
    expected.float().square().mean().backward()
    for p, q in zip(net.parameters(), reference.parameters(), strict=True):
        assert p.grad.dtype == torch.float32
        torch.testing.assert_close(whole(p.grad), q.grad.cpu(), rtol=0, atol=0.05)


def checkpoints(rank: int) -> None:
    """Distributed checkpoints of a sharded net and its optimizer, also saved in the background."""
    folder = [tempfile.mkdtemp()]
    dist.broadcast_object_list(folder, 0)
    net = sharded(new_net().cuda())
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    net(own_rows(rank)(batches()[0])).square().mean().backward()
    optimizer.step()
    model_state, optimizer_state = get_state_dict(net, optimizer)
    dcp.save({"net": model_state, "optimizer": optimizer_state}, checkpoint_id=f"{folder[0]}/now")
    dcp.async_save({"net": model_state}, checkpoint_id=f"{folder[0]}/later").result()
    torch.manual_seed(9)
    other = sharded(Net().cuda())
    its_optimizer = torch.optim.AdamW(other.parameters(), lr=1e-2)
    model_state, optimizer_state = get_state_dict(other, its_optimizer)
    dcp.load({"net": model_state, "optimizer": optimizer_state}, checkpoint_id=f"{folder[0]}/now")
    set_state_dict(other, its_optimizer, model_state_dict=model_state, optim_state_dict=optimizer_state)
    later = {"net": sharded(Net().cuda()).state_dict()}
    dcp.load(later, checkpoint_id=f"{folder[0]}/later")
    for p, q, r in zip(net.parameters(), other.parameters(), later["net"].values(), strict=True):
        assert whole(p).equal(whole(q)) and whole(p).equal(whole(r)) and q.device == torch.device("cuda", rank)
        assert whole(optimizer.state[p]["exp_avg"]).equal(whole(its_optimizer.state[q]["exp_avg"]))


def on_two(rank: int) -> None:
    fsdp2(rank)
    mixed_precision(rank)
    tensors(rank)
    tensor_parallel(rank)
    autocast(rank)
    checkpoints(rank)


def on_four(rank: int) -> None:
    """Two dimensions: shards that are replicated, and tensor parallel below FSDP2."""
    reference = train(new_net(), lambda batch: batch)
    hybrid = init_device_mesh("cuda", (2, 2), mesh_dim_names=("replicas", "shards"))
    same(train(sharded(new_net().cuda(), mesh=hybrid), own_rows(rank, 4)), reference)
    mesh = init_device_mesh("cuda", (2, 2), mesh_dim_names=("data", "columns"))
    net = new_net().cuda()
    for block in net.blocks:
        parallelize_module(block, mesh["columns"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
    net = sharded(net, mesh=mesh["data"])
    same(train(net, own_rows(mesh["data"].get_local_rank()), foreach=False), reference)
