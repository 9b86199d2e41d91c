"""Ten kinds of bugs that a second GPU makes, each in three forms: a replacement of text in the right program."""

from dataclasses import dataclass
from pathlib import Path

RIGHT = (Path(__file__).parent / "detector.py").read_text(encoding="utf-8")
Edits = tuple[tuple[str, str], ...]  # old text, which the program has once, and new text


@dataclass(frozen=True)
class Bug:
    """One form of a bug. `told` says after the repair what it was."""

    name: str
    edits: Edits
    told: str


@dataclass(frozen=True)
class Kind:
    """A case of the capstone. `title` is what its user complains about.

    homes: the functions or classes of the program that its forms change; notebooks: where the series has it.
    """

    name: str
    title: str
    homes: tuple[str, ...]
    notebooks: tuple[str, ...]
    forms: tuple[Bug, Bug, Bug]

    @property
    def key(self) -> str:
        return f"34.{self.name}"


KEPT = "            self.rate.copy_(0.5 * self.rate + 0.5 * target.mean())\n        return self.rate.clone()\n"
SHARDED = """    for part in (net.body, net.head):
        fully_shard(part)
    fully_shard(net)
    return net, torch.optim.SGD(net.parameters(), lr=lr)
"""
POINTS = """        self.register_buffer("middles", middle_points(), persistent=False)

    def forward(self, features):
        return self.middles
"""
DIVIDED = """    total = counts.sum(0)
    distributed.all_reduce(total)
    return (distributed.get_world_size() * sums.sum(0) / total.clamp(min=1)).sum()
"""
SYNCHRONISED = """    net = nn.SyncBatchNorm.convert_sync_batchnorm(net).cuda()
    return DistributedDataParallel(net, device_ids=[torch.cuda.current_device()])
"""
LOGGED = """    distributed.all_reduce(together)
    return (together[0]"""
STEP = """        with contextlib.nullcontext() if k == len(pieces) - 1 else ddp.no_sync():
            done.append(ddp(*piece))
            (loss_of_rank(*done[-1]) / len(pieces)).backward()
"""

KINDS = (
    Kind(
        "memory",
        "A layer that forgets",
        ("ObjectRate",),
        ("02", "29"),
        (
            Bug(
                "assigned in a replica",
                (
                    (
                        KEPT,
                        "            self.rate = 0.5 * self.rate + 0.5 * target.mean()\n        return self.rate\n",
                    ),
                ),
                "`self.rate = ...` gives the replica a new tensor, and DataParallel throws replicas away after the "
                "step. A write in place, `copy_`, reaches the memory of the net itself on its first GPU. Autograd may "
                "hold that memory, so what is returned is a copy.",
            ),
            Bug(
                "a number of Python",
                (
                    (
                        KEPT,
                        "            self.seen = 0.5 * getattr(self, 'seen', 0.0) + 0.5 * target.mean().item()\n"
                        "            self.rate = torch.full_like(self.rate, self.seen)\n        return self.rate\n",
                    ),
                ),
                "A number of Python is an attribute of the replica, which is thrown away after the step. Only memory "
                "that the replica shares with the net stays: a buffer that is written in place.",
            ),
            Bug(
                "registered anew",
                (
                    (
                        KEPT,
                        "            self.register_buffer('rate', 0.5 * self.rate + 0.5 * target.mean())\n"
                        "        return self.rate\n",
                    ),
                ),
                "`register_buffer` in `forward` gives the replica a new buffer, and the net keeps its old one. A write "
                "in place reaches the net.",
            ),
        ),
    ),
    Kind(
        "apart",
        "Ranks with different weights",
        ("take_step",),
        ("07",),
        (
            Bug(
                "nobody synchronises",
                (("if k == len(pieces) - 1 else ddp.no_sync()", "if k == len(pieces) else ddp.no_sync()"),),
                "`k` ends at `len(pieces) - 1`, so `no_sync` was around every part, and no gradient was ever sent. "
                "Each rank trained alone. With one rank there is nothing to send.",
            ),
            Bug(
                "the flag comes after the forward",
                (
                    (
                        STEP,
                        "        done.append(ddp(*piece))\n"
                        "        ddp.require_backward_grad_sync = k == len(pieces) - 1\n"
                        "        (loss_of_rank(*done[-1]) / len(pieces)).backward()\n",
                    ),
                ),
                "DDP reads the flag in the *forward*, so it came one part late: the gradients of the first part were "
                "sent, and those of the last were not. `no_sync` has to be around forward *and* backward.",
            ),
            Bug(
                "around the wrapper",
                (("done.append(ddp(*piece))", "done.append(ddp.module(*piece))"),),
                "`ddp.module(...)` is the bare net. Without the wrapper's forward the reducer is not prepared, and the "
                "gradients stay where they are.",
            ),
        ),
    ),
    Kind(
        "still",
        "Sharded, and it does not learn",
        ("shard",),
        ("10",),
        (
            Bug(
                "the optimizer came first",
                (
                    (
                        SHARDED,
                        "    optimizer = torch.optim.SGD(net.parameters(), lr=lr)\n"
                        + SHARDED.replace("torch.optim.SGD(net.parameters(), lr=lr)", "optimizer"),
                    ),
                ),
                "`fully_shard` replaces the parameters. An optimizer that was made before holds the old ones, which "
                "nobody uses any more, and steps them.",
            ),
            Bug(
                "groups from before",
                (
                    (
                        SHARDED,
                        "    groups = [{'params': list(part.parameters())} for part in (net.body, net.head)]\n"
                        + SHARDED.replace("net.parameters(), lr", "groups, lr"),
                    ),
                ),
                "The optimizer was made after `fully_shard`, and its groups before: they list parameters that the net "
                "no longer has.",
            ),
            Bug(
                "a head that nobody shards",
                (
                    (
                        "    for part in (net.body, net.head):\n        fully_shard(part)\n    fully_shard(net)\n",
                        "    fully_shard(net.body)\n    net.cuda()\n",
                    ),
                ),
                "Only the body was sharded. The gradients of the head are its own on each rank, so the ranks go apart, "
                "or the optimizer refuses a mixture of tensors and DTensors. `fully_shard(net)` takes what is left.",
            ),
        ),
    ),
    Kind(
        "devices",
        "Two devices in one addition",
        ("Anchors",),
        ("04", "18"),
        (
            Bug(
                "kept from the first call",
                (
                    (
                        POINTS,
                        "        self.middles = None\n\n    def forward(self, features):\n"
                        "        if self.middles is None:\n"
                        "            self.middles = middle_points().to(features.device)\n"
                        "        return self.middles\n",
                    ),
                ),
                "The first call decided the device for ever. A plain attribute does not move with the net, and every "
                "replica inherits it. A buffer does move.",
            ),
            Bug(
                "a plain attribute",
                (
                    (
                        '        self.register_buffer("middles", middle_points(), persistent=False)\n',
                        "        self.middles = middle_points().cuda()\n",
                    ),
                ),
                "A tensor that is a plain attribute stays where it was made: on the GPU that was current then. A "
                "buffer moves with the net, and replicas get it on their own device.",
            ),
            Bug(
                "a device by its name",
                (("        return self.middles\n", "        return self.middles.to('cuda:0')\n"),),
                "`cuda:0` was written into the program. A layer asks its input where it is.",
            ),
        ),
    ),
    Kind(
        "gradient",
        "A gradient that depends on the number of ranks",
        ("loss_of_rank",),
        ("03", "07"),
        (
            Bug(
                "its own objects",
                ((DIVIDED, "    return (sums.sum(0) / counts.sum(0).clamp(min=1)).sum()\n"),),
                "Each rank divided by its own objects, so an object weighed more on the rank that had fewer. The "
                "counts of all ranks have to be added first, and DDP's mean has to be undone by the number of ranks.",
            ),
            Bug(
                "an average of averages",
                (
                    (
                        DIVIDED,
                        "    means = sums.sum(0) / counts.sum(0).clamp(min=1)\n"
                        "    have = (counts.sum(0) > 0).float()\n"
                        "    distributed.all_reduce(have)\n"
                        "    return (distributed.get_world_size() * means / have.clamp(min=1)).sum()\n",
                    ),
                ),
                "An average of the ranks' means weighs ranks, not objects. It is right only where all ranks have "
                "equally many.",
            ),
            Bug(
                "DDP's mean forgotten",
                (("distributed.get_world_size() * sums.sum(0)", "sums.sum(0)"),),
                "DDP takes the mean of the ranks' gradients. The sum over all objects is asked for, so the number of "
                "ranks has to be multiplied in.",
            ),
        ),
    ),
    Kind(
        "waiting",
        "A run that stops in the log",
        ("log_losses",),
        ("08",),
        (
            Bug(
                "only rank 0 logs",
                (
                    (
                        LOGGED,
                        "    if distributed.get_rank() == 0:\n        distributed.all_reduce(together)\n"
                        "    return (together[0]",
                    ),
                ),
                "A collective is a call that all ranks make. Rank 0 alone waits in it until its time is over.",
            ),
            Bug(
                "only where there are objects",
                (
                    (
                        LOGGED,
                        "    if together[1] > 0:\n        distributed.all_reduce(together)\n    return (together[0]",
                    ),
                ),
                "Whether a rank came to the collective depended on its own pictures. It went well until a rank had no "
                "object.",
            ),
            Bug(
                "an early return",
                (
                    (
                        "    together = torch.stack([sums[:, 1].sum()",
                        "    if not counts[:, 1].any():\n        return 0.0\n"
                        "    together = torch.stack([sums[:, 1].sum()",
                    ),
                ),
                "A rank without objects returned early, and the others waited for it. What all ranks do must not "
                "depend on what one of them has.",
            ),
        ),
    ),
    Kind(
        "unseen",
        "Pictures that nobody sees",
        ("rows_of_rank",),
        ("07", "08"),
        (
            Bug(
                "an order for each rank",
                (("manual_seed(seed + epoch))", "manual_seed(seed + epoch + rank))"),),
                "Each rank shuffled for itself and took its share of its own order. Shares of different orders "
                "overlap. All ranks need one order.",
            ),
            Bug(
                "an order for all epochs",
                (("manual_seed(seed + epoch))", "manual_seed(seed))"),),
                "The epoch was not part of the seed, so each rank met the same rows in the same order for ever; it is "
                "what a missing `set_epoch` does.",
            ),
            Bug(
                "the same share on every rank",
                (
                    (
                        "    return order[rank::ranks].split(batch_size)\n",
                        "    return order.split(batch_size)[: len(order) // (ranks * batch_size)]\n",
                    ),
                ),
                "The number of batches was divided by the ranks, and which ones they are did not depend on the rank: "
                "all took the first share.",
            ),
        ),
    ),
    Kind(
        "restart",
        "A run that goes on differently",
        ("save", "load"),
        ("20", "28", "30"),
        (
            Bug(
                "the random numbers of rank 0",
                (('kept["draws"][distributed.get_rank()]', 'kept["draws"][0]'),),
                "Every rank has a generator of its own. After the restart all of them went on with that of rank 0, and "
                "dropped the same units.",
            ),
            Bug(
                "names that do not match",
                (
                    ('"net": ddp.module.state_dict()', '"net": ddp.state_dict()'),
                    (
                        'ddp.module.load_state_dict(kept["net"])',
                        'ddp.module.load_state_dict(kept["net"], strict=False)',
                    ),
                ),
                "The wrapper's names begin with `module.`, those of the net do not, and `strict=False` says nothing "
                "about it: no weight was loaded.",
            ),
            Bug(
                "nobody waits for the file",
                (
                    (
                        "        torch.save(kept, path)\n    distributed.barrier()\n",
                        "        torch.save(kept, path)\n",
                    ),
                ),
                "Rank 0 was still writing when rank 1 read: the old file, or half of the new one. A barrier after the "
                "write says that the file is complete.",
            ),
        ),
    ),
    Kind(
        "statistics",
        "Means that differ between the ranks",
        ("wrap",),
        ("07",),
        (
            Bug(
                "each rank by its own pictures",
                (("nn.SyncBatchNorm.convert_sync_batchnorm(net).cuda()", "net.cuda()"),),
                "Under DDP each rank normalises by its own pictures, unless the layers are converted to "
                "`SyncBatchNorm`. That buffers are sent from rank 0 hides it: what the others had counted is lost.",
            ),
            Bug(
                "buffers that stay apart",
                (
                    (
                        SYNCHRONISED,
                        "    device_ids = [torch.cuda.current_device()]\n"
                        "    net = net.cuda()\n"
                        "    return DistributedDataParallel(net, device_ids=device_ids, broadcast_buffers=False)\n",
                    ),
                ),
                "`broadcast_buffers=False` is right where the layers are synchronised. Here they were not, so each "
                "rank kept statistics of its own pictures.",
            ),
            Bug(
                "a group of one",
                (
                    (
                        "    net = nn.SyncBatchNorm.convert_sync_batchnorm(net).cuda()\n",
                        "    own, _ = distributed.new_subgroups(1)\n"
                        "    net = nn.SyncBatchNorm.convert_sync_batchnorm(net, own).cuda()\n",
                    ),
                ),
                "`SyncBatchNorm` synchronises within its group, and that group had one rank.",
            ),
        ),
    ),
    Kind(
        "masks",
        "Ranks that draw alike",
        ("seed_rank",),
        ("28",),
        (
            Bug(
                "how many instead of which",
                (
                    (
                        "manual_seed(seed + 1 + distributed.get_rank())",
                        "manual_seed(seed + distributed.get_world_size())",
                    ),
                ),
                "The *number* of ranks was part of the seed, which is the same on all of them. The rank was meant.",
            ),
            Bug(
                "one seed for all",
                (("    torch.manual_seed(seed + 1 + distributed.get_rank())\n", ""),),
                "After the net was made, all ranks had the same generator in the same state. The rank has to be part "
                "of the second seed, and must not be part of the first.",
            ),
            Bug(
                "the CPU alone",
                (
                    (
                        "torch.manual_seed(seed + 1 + distributed.get_rank())",
                        "torch.default_generator.manual_seed(seed + 1 + distributed.get_rank())",
                    ),
                ),
                "The generator of the CPU got a seed for each rank, and those of the GPUs, which draw the masks, did "
                "not.",
            ),
        ),
    ),
)
