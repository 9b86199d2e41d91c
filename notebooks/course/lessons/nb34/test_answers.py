"""Answers to the exercises of notebook 34: right ones in an unusual form, and wrong ones that are nearly right."""

import pytest
from answers import all_right, all_wrong

import vgpu
from course.lessons.nb34.cases import instead


@pytest.fixture(autouse=True)
def two_gpus():
    with vgpu.virtual_gpus(2):
        yield


def changed(*edits):
    """An answer: what the right program has after these replacements."""

    @instead(*edits)
    def answer(): ...

    return answer


UPDATE = "            self.rate.copy_(0.5 * self.rate + 0.5 * target.mean())\n"
KEPT = UPDATE + "        return self.rate.clone()\n"
SYNC = "        with contextlib.nullcontext() if k == len(pieces) - 1 else ddp.no_sync():\n"
BOTH = "            done.append(ddp(*piece))\n            (loss_of_rank(*done[-1]) / len(pieces)).backward()\n"
PARTS = "    for part in (net.body, net.head):\n        fully_shard(part)\n"
OPTIMIZER = "    return net, torch.optim.SGD(net.parameters(), lr=lr)\n"
POINTS = '        self.register_buffer("middles", middle_points(), persistent=False)\n'
MIDDLES = "        return self.middles\n"
TOTAL = "    total = counts.sum(0)\n    distributed.all_reduce(total)\n"
DIVIDED = "    return (distributed.get_world_size() * sums.sum(0) / total.clamp(min=1)).sum()\n"
LOGGED = "    distributed.all_reduce(together)\n    return (together[0] / together[1].clamp(min=1)).item()\n"
ORDER = "torch.randperm(count, generator=torch.Generator().manual_seed(seed + epoch))"
WHOLE = "    order = order[: count // (ranks * batch_size) * ranks * batch_size]\n"
SHARE = "    return order[rank::ranks].split(batch_size)\n"
LOADED = 'ddp.module.load_state_dict(kept["net"])'
OPTIMIZED = '    optimizer.load_state_dict(kept["optimizer"])\n'
DRAWS = '    torch.cuda.set_rng_state(kept["draws"][distributed.get_rank()].cpu())\n'
CONVERTED = "    net = nn.SyncBatchNorm.convert_sync_batchnorm(net).cuda()\n"
WRAPPED = "    return DistributedDataParallel(net, device_ids=[torch.cuda.current_device()])\n"
SEEDED = "    torch.manual_seed(seed + 1 + distributed.get_rank())\n"

RIGHT = [
    ("34.memory", changed((UPDATE, "            self.rate.mul_(0.5).add_(0.5 * target.mean())\n"))),
    ("34.memory", changed((UPDATE, "            self.rate.lerp_(target.mean(), 0.5)\n"))),
    ("34.memory", changed(("self.rate.clone()", "self.rate + 0"))),
    ("34.apart", changed((SYNC, "        with contextlib.nullcontext():\n"))),
    ("34.apart", changed((SYNC + BOTH, f"        done.append(ddp(*piece))\n{SYNC}    {BOTH.splitlines()[1]}\n"))),
    ("34.apart", changed(("k == len(pieces) - 1 else", "piece is pieces[-1] else"))),
    ("34.still", changed((PARTS, ""))),
    ("34.still", changed((PARTS, "    for part in (net.head, *net.body):\n        fully_shard(part)\n"))),
    (
        "34.still",
        changed(
            (
                OPTIMIZER,
                "    groups = [{'params': [p]} for p in net.parameters()]\n"
                "    return net, torch.optim.SGD(groups, lr)\n",
            )
        ),
    ),
    ("34.devices", changed((MIDDLES, "        return self.middles.to(features.device)\n"))),
    ("34.devices", changed((POINTS, ""), (MIDDLES, "        return middle_points().to(features)\n"))),
    (
        "34.devices",
        changed((POINTS, "        self.middles = nn.Parameter(middle_points(), requires_grad=False)\n")),
    ),
    (
        "34.gradient",
        changed((DIVIDED, "    return (sums.sum(0) / (total / distributed.get_world_size()).clamp(min=1e-9)).sum()\n")),
    ),
    (
        "34.gradient",
        changed(
            (
                TOTAL + DIVIDED,
                "    from frcnn_lite.parallel.collectives import reduce_loss_over_ranks\n"
                "    own, _ = reduce_loss_over_ranks([sums[:, 0], sums[:, 1]], [counts[:, 0], counts[:, 1]])\n"
                "    return sum(own)\n",
            )
        ),
    ),
    (
        "34.waiting",
        changed(
            (
                LOGGED,
                "    everybody = [torch.zeros_like(together) for _ in range(distributed.get_world_size())]\n"
                "    distributed.all_gather(everybody, together)\n    loss, count = sum(everybody).tolist()\n"
                "    return loss / max(count, 1)\n",
            )
        ),
    ),
    ("34.unseen", changed((SHARE, "    return order.chunk(ranks)[rank].split(batch_size)\n"))),
    (
        "34.unseen",
        changed(
            (WHOLE, ""),
            (
                SHARE,
                "    batches = order.split(batch_size)[: count // batch_size // ranks * ranks]\n"
                "    return batches[rank::ranks]\n",
            ),
        ),
    ),
    (
        "34.unseen",
        changed((ORDER, "torch.randperm(count, generator=torch.Generator().manual_seed(1000 * seed + epoch))")),
    ),
    (
        "34.restart",
        changed((LOADED, '[own.copy_(kept["net"][name]) for name, own in ddp.module.state_dict().items()]')),
    ),
    (
        "34.restart",
        changed(
            ('"net": ddp.module.state_dict()', '"net": ddp.state_dict()'), (LOADED, 'ddp.load_state_dict(kept["net"])')
        ),
    ),
    (
        "34.restart",
        changed((DRAWS, '    torch.cuda.set_rng_state_all([kept["draws"][distributed.get_rank()].cpu()] * 2)\n')),
    ),
    ("34.statistics", changed((CONVERTED, "    net = nn.SyncBatchNorm.convert_sync_batchnorm(net.cuda())\n"))),
    ("34.statistics", changed((CONVERTED, "    net = net.cuda()\n    nn.SyncBatchNorm.convert_sync_batchnorm(net)\n"))),
    (
        "34.statistics",
        changed(
            (CONVERTED, "    net = net.cuda()\n"),
            (WRAPPED, f"    ddp = {WRAPPED[11:]}    return nn.SyncBatchNorm.convert_sync_batchnorm(ddp)\n"),
        ),
    ),
    ("34.masks", changed((SEEDED, SEEDED.replace("torch.manual", "torch.cuda.manual")))),
    ("34.masks", changed((SEEDED, "    torch.manual_seed(seed + 1000 * (distributed.get_rank() + 1))\n"))),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("34.apart", changed(("k == len(pieces) - 1 else", "k == parts - 1 else")), None),
    (
        "34.memory",
        changed(
            (
                KEPT,
                "            self.rate = (0.5 * self.rate + 0.5 * target.mean()).detach()\n        return self.rate\n",
            )
        ),
        "still in the replica",
    ),
    ("34.memory", changed((UPDATE, "            self.rate.fill_(target.mean())\n")), None),
    ("34.memory", changed(("self.rate.clone()", "self.rate.detach()")), "what is returned is overwritten"),
    ("34.memory", changed(("self.rate.clone()", "0.5")), None),
    (
        "34.apart",
        changed(
            ("else ddp.no_sync()", "else contextlib.nullcontext()"),
            ("    optimizer.step()\n", "    if distributed.get_rank() == 0:\n        optimizer.step()\n"),
        ),
        None,
    ),
    (
        "34.apart",
        changed((SYNC, "        with contextlib.nullcontext() if k == 0 else ddp.no_sync():\n")),
        "the flag comes too late",
    ),
    ("34.apart", changed(("    optimizer.zero_grad()\n", "")), None),
    (
        "34.apart",
        changed(
            (
                "    optimizer.step()\n",
                "    for p in ddp.parameters():\n        distributed.broadcast(p.data, 0)\n    optimizer.step()\n",
            ),
            (SYNC, "        with ddp.no_sync():\n"),
        ),
        None,
    ),
    ("34.still", changed((OPTIMIZER, "    return net, torch.optim.SGD(net.head.parameters(), lr=lr)\n")), None),
    ("34.still", changed((PARTS + "    fully_shard(net)\n", "    net = DistributedDataParallel(net.cuda())\n")), None),
    ("34.still", changed((OPTIMIZER, "    return net, torch.optim.SGD(net.parameters(), lr=10 * lr)\n")), None),
    (
        "34.devices",
        changed((MIDDLES, "        self.middles = self.middles.to(0)\n        return self.middles\n")),
        "it stays on one gpu",
    ),
    ("34.devices", changed((POINTS, ""), (MIDDLES, "        return middle_points().cuda()\n")), "the current gpu"),
    (
        "34.devices",
        changed((MIDDLES, "        return torch.zeros_like(features[:1, :1, :, :]).expand(1, 2, 8, 8)[0]\n")),
        None,
    ),
    ("34.gradient", changed((TOTAL, "    total = counts.sum(0) * distributed.get_world_size()\n")), "its own objects"),
    ("34.gradient", changed((DIVIDED, DIVIDED.replace("distributed.get_world_size()", "4"))), None),
    (
        "34.gradient",
        changed(
            (
                TOTAL + DIVIDED,
                f"    total = counts.sum(0)\n    if total[1] > 0:\n        distributed.all_reduce(total)\n{DIVIDED}",
            )
        ),
        None,
    ),
    (
        "34.waiting",
        changed((LOGGED, f"    distributed.barrier()\n{LOGGED.splitlines()[1]}\n")),
        "nobody asks the others",
    ),
    (
        "34.waiting",
        changed(
            (
                LOGGED,
                LOGGED.replace(".item()", "").replace(
                    "distributed.all_reduce(together)", "distributed.reduce(together, 0)"
                ),
            )
        ),
        "rank 0 alone knows",
    ),
    (
        "34.waiting",
        changed((LOGGED, f"    try:\n    {LOGGED.splitlines()[0]}\n    finally:\n        return 0.0\n")),
        None,
    ),
    ("34.unseen", changed((ORDER, f"{ORDER.replace(' + epoch', '')}.roll(epoch)")), "every epoch the same"),
    ("34.unseen", changed((ORDER, "(torch.arange(count) + epoch) % count")), "every epoch the same"),
    ("34.unseen", changed((SHARE, "    return order[rank::ranks].split(batch_size)[:1]\n")), None),
    ("34.unseen", changed((ORDER, ORDER.replace("seed + epoch", "epoch"))), None),
    ("34.restart", changed((DRAWS, '    torch.cuda.set_rng_state(kept["draws"][-1].cpu())\n')), None),
    ("34.restart", changed(('    return kept["step"]', "    return 2")), None),
    ("34.restart", changed((DRAWS, "    torch.cuda.manual_seed(distributed.get_rank())\n")), "no random numbers"),
    (
        "34.restart",
        changed(("        torch.save(kept, path)\n    distributed.barrier()\n", "        torch.save(kept, path)\n")),
        None,
    ),
    (
        "34.restart",
        changed(
            (
                "    if distributed.get_rank() == 0:\n        torch.save(kept, path)\n    distributed.barrier()\n",
                "    distributed.barrier()\n    if distributed.get_rank() == 0:\n        torch.save(kept, path)\n",
            )
        ),
        None,
    ),
    (
        "34.statistics",
        changed(
            (WRAPPED, WRAPPED.replace(")\n", ", broadcast_buffers=False)\n")), (CONVERTED, "    net = net.cuda()\n")
        ),
        "each rank by its own",
    ),
    ("34.statistics", changed((CONVERTED, "    net = net.cuda().eval()\n")), "running statistics"),
    ("34.statistics", changed((WRAPPED, "    return nn.DataParallel(net)\n")), None),
    ("34.masks", changed(("    torch.manual_seed(seed)\n", "")), None),
    ("34.masks", changed((SEEDED, "    torch.manual_seed(distributed.get_rank())\n")), None),
    ("34.masks", changed((SEEDED, "    torch.rand(distributed.get_rank() * 7, device='cuda')\n")), "all draw alike"),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)


def test_a_function_that_the_program_does_not_have_is_named():
    from course.kit.learn.by_key import find_exercise
    from course.kit.learn.check import judge

    def take_a_step():
        return 0

    verdict = judge(find_exercise("34.apart"), take_a_step)
    assert not verdict.solved and "the program has no `take_a_step`" in verdict.words
