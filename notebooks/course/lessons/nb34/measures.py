"""A measurement for each kind of bug: it takes the text of a program and a situation, and returns what a run gives."""

import os
import tempfile
import time
from collections.abc import Callable, Iterable
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from course.kit.rank_threads import call_on_ranks
from course.lessons.nb34.measured import LIMIT, Measured, on_two_ranks, pictures
from course.lessons.nb34.plant import program

SLOW = 0.7  # seconds that rank 0 takes to write, at most


def memory(text: str, situation: str, seed: int) -> Measured:
    """A net with a running mean: kept on two GPUs, used twice before backward, left alone in evaluation."""
    net = _net(program(text), seed).cuda()
    rows = torch.arange(seed % 8, seed % 8 + 4)
    if situation == "four steps on two GPUs":
        replicated = nn.DataParallel(net, [0, 1])
        for _ in range(4):
            replicated(*_batch(rows.repeat(2)))  # both GPUs have the same pictures
        rate = net.state_dict()["rate.rate"].item()
        return Measured(f"the rate of objects is {rate:.3f} after four steps on two GPUs", [rate])
    if situation == "two calls before backward":
        losses = [net(*_batch(rows + shift))[0].sum() for shift in (0, 8)]
        sum(losses).backward()
        return _gradient_of(net, "the gradient of two calls")
    net(*_batch(rows))
    before = net.state_dict()["rate.rate"].item()
    net.eval()
    losses = net(*_batch(rows + 8))[0].sum().item()
    after = net.state_dict()["rate.rate"].item()
    return Measured(f"in evaluation the rate goes from {before:.3f} to {after:.3f}", [before, after, losses / 1000])


def apart(text: str, parts: int, seed: int) -> Measured:
    """Two steps under DDP, the batch in parts."""
    weights, others = on_two_ranks(_two_steps, text, parts, seed)
    different = int((weights[0] != others[0]).sum())
    words = f"the ranks have equal weights, {weights[0].norm():.4f} long together"
    if different:
        words = f"after two steps {different / len(weights[0]):.0%} of the weights differ between the ranks"
    return Measured(words, [different, *_sample(weights[0]), *_sample(others[0]), *weights[1], *others[1]])


def _two_steps(text: str, parts: int, seed: int) -> tuple[Tensor, list[float]]:
    names, rank = program(text), distributed.get_rank()
    names["loss_of_rank"] = lambda sums, counts: (sums.sum(0) / counts.sum(0)).sum()  # a different case has that one
    ddp = DistributedDataParallel(_net(names, seed).cuda())
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for step in range(2):
        start = 8 * rank + step
        sums, counts = names["take_step"](ddp, optimizer, _batch(torch.arange(start, start + 8)), parts)
    return _flat(ddp.parameters()), [len(sums), counts.sum().item() / 100]


def still(text: str, lr: float, seed: int) -> Measured:
    """Three steps under FSDP2."""
    ranks = on_two_ranks(_three_steps, text, lr, seed)
    moved, tensors, losses, weights, share, own = ranks[0]
    different = int((weights != ranks[1][3]).sum())
    words = f"{moved} of {tensors} tensors have moved after three steps, losses {', '.join(f'{x:.2f}' for x in losses)}"
    if different:
        words = f"the ranks have {different:,} of {len(weights):,} weights that differ after three steps"
    if share > 0.75:
        words = "rank 0 holds all weights, and not its share of them"
    return Measured(words, [moved, different, share > 0.75, own, *losses, *_sample(weights)])


def _three_steps(text: str, lr: float, seed: int) -> tuple[int, int, list[float], Tensor, float, bool]:
    """Moved tensors, all tensors, losses, weights, the share that this rank holds, and whether those are stepped."""
    names, rank = program(text), distributed.get_rank()
    net, optimizer = names["shard"](_net(names, seed), lr)
    before, losses = [_whole(p) for p in net.parameters()], []
    for _ in range(3):
        sums, counts = net(*_batch(torch.arange(8 * rank, 8 * rank + 8)))
        loss = (sums.sum(0) / counts.sum(0)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())  # noqa: FL009 three steps
    after = [_whole(p) for p in net.parameters()]
    moved = sum(not torch.equal(old, new) for old, new in zip(before, after, strict=True))
    held = sum(p.to_local().numel() if hasattr(p, "to_local") else p.numel() for p in net.parameters())
    share = held / sum(tensor.numel() for tensor in after)
    stepped = {id(p) for group in optimizer.param_groups for p in group["params"]}
    own = stepped == {id(p) for p in net.parameters()}
    return moved, len(after), losses, torch.cat([tensor.flatten() for tensor in after]), share, own


def devices(text: str, situation: str, seed: int) -> Measured:
    """A net that has worked on `cuda:0`, and then works somewhere else."""
    net = _net(program(text), seed).cuda().eval()
    images = pictures().images[seed % 8 : seed % 8 + 8]
    net(images.cuda())
    if situation == "on two GPUs":
        found = nn.DataParallel(net, [0, 1])(images.cuda())
    else:
        home = torch.device(situation.removeprefix("moved to "))
        found = net.to(home)(images.to(home))
        if any(tensor.device != home for tensor in found):
            return Measured(f"{situation}, it gives tensors on {found[1].device}", [False])
    return Measured(f"{situation}, boxes of mean {found[1].mean():.3f}", [True, *_sample(_flat(found), 40)])


def gradient(text: str, objects: tuple[int, ...], seed: int) -> Measured:
    """The gradient after DDP's mean, where the ranks have so many objects: two ranks, or one."""
    mine, kept = call_on_ranks(len(objects), _loss_of_rank, text, objects, seed, limit=LIMIT)[0]
    sums = zip(("cells", "objects"), _sums(objects, seed), (128, max(1, sum(objects))), strict=True)
    one = {what: (part.sum() / count).item() for what, part, count in sums}
    off = [(what, found / right) for found, (what, right) in zip(mine, one.items(), strict=True) if right]
    what, times = max(off, key=lambda pair: abs(pair[1] - 1))
    words = f"with {' and '.join(map(str, objects))} objects on the rank{'s' * (len(objects) > 1)} "
    words += f"the gradient of the {what} is {times:.2f} times that of one process"
    if not kept:
        words = "the counts that were handed over are changed"
    return Measured(words, [kept, *mine])


def _loss_of_rank(text: str, objects: tuple[int, ...], seed: int) -> tuple[list[float], bool]:
    rank, weights = distributed.get_rank(), torch.ones(2, device="cuda", requires_grad=True)
    counts = torch.zeros(8 // len(objects), 2)
    counts[:, 0], counts[0, 1] = 16, objects[rank]
    own = torch.stack([part.chunk(len(objects))[rank] for part in _sums(objects, seed)], dim=1).cuda()
    counts = counts.cuda()
    before = counts.clone()
    program(text)["loss_of_rank"](weights * own, counts).backward()
    summed = _flat([weights.grad if weights.grad is not None else torch.zeros(2)]).cuda()
    distributed.all_reduce(summed)
    return [number / len(objects) for number in summed.tolist()], torch.equal(counts, before)


def _sums(objects: tuple[int, ...], seed: int) -> tuple[Tensor, Tensor]:
    """The sums of eight pictures, divided among the ranks: over cells, and over objects, 0 where a rank has none."""
    cells, those = torch.rand(2, 8, generator=torch.Generator().manual_seed(seed)) + 0.5
    return cells, those * torch.tensor(objects).sign().repeat_interleave(8 // len(objects))


def waiting(text: str, objects: tuple[int, int], seed: int) -> Measured:
    """What the ranks log, where they have so many objects."""
    logged = on_two_ranks(_logged, text, objects, seed, limit=2.0)
    return Measured(f"the ranks log {' and '.join(f'{value:.4f}' for value in logged)}", logged)


def _logged(text: str, objects: tuple[int, int], seed: int) -> float:
    rank = distributed.get_rank()
    drawn = torch.rand(4, 2, generator=torch.Generator().manual_seed(seed + rank))
    sums = (drawn * (objects[rank] > 0)).cuda()  # noqa: FL001 the rank's own
    counts = torch.zeros(4, 2, device="cuda")  # noqa: FL001 the rank's own
    counts[0, 1] = objects[rank]
    return program(text)["log_losses"](sums.requires_grad_(), counts)


def unseen(text: str, count: int, size: int, seed: int) -> Measured:
    """Which rows the ranks take in three epochs."""
    ranks = on_two_ranks(_rows_of_rank, text, count, size, seed)
    epochs = [[row for rank in ranks for batch in rank[epoch] for row in batch] for epoch in range(3)]
    rounds = count // (2 * size)
    lengths = [[[len(batch) for batch in epoch] for epoch in rank[:3]] for rank in ranks]
    twice = [len(rows) - len(set(rows)) for rows in epochs]
    missing = [count - len(set(rows)) for rows in epochs]
    facts: dict[str, bool] = {
        f"{missing[0]} of {count} rows are not seen in an epoch, and {twice[0]} are seen twice": not any(twice)
        and missing == [count - 2 * rounds * size] * 3,
        f"the batches of the ranks have {lengths[0][0]} and {lengths[1][0]} rows": lengths
        == [[[size] * rounds] * 3] * 2,
        "two epochs have the same rows in the same order": not any(map(_alike, epochs, epochs[1:])),
        "the rows come in their own order": not any(_alike(rows, range(count)) for rows in epochs),
        "a second run takes a different order": all(rank[3] == rank[0] for rank in ranks),
        "a different seed gives the same order": not _alike(*(chain(*ranks[0][asked]) for asked in (0, 4))),
    }
    return _all_true(facts, "each row is seen once, in an order of its own")


def _rows_of_rank(text: str, count: int, size: int, seed: int) -> list[list[list[int]]]:
    rows = program(text)["rows_of_rank"]
    asked = [(0, seed), (1, seed), (2, seed), (0, seed), (0, seed + 77)]
    return [[[int(row) for row in batch] for batch in rows(count, size, epoch, own)] for epoch, own in asked]


def _alike(one: Iterable[int], other: Iterable[int]) -> bool:
    """Whether more than a third of the neighbours in one order are neighbours in the other: a turned order is alike."""
    pairs, others = set(pairwise(one)), set(pairwise(other))
    return len(pairs & others) > max(1, len(pairs) // 3)


def restart(text: str, situation: str, seed: int) -> Measured:
    """A run that is saved and goes on, beside the one that was not stopped."""
    with tempfile.TemporaryDirectory() as folder:
        if situation == "an older file is there, and the disk is slow":
            steps = on_two_ranks(_slow, text, folder, seed)
            return Measured(f"the ranks go on at steps {steps[0]} and {steps[1]}", steps)
        ranks = on_two_ranks(_restart, text, folder, situation, seed)
    different, numbers = max(rank[1] for rank in ranks), ranks[0][2]
    words = (
        f"two steps after the restart {different / numbers:.0%} of the numbers differ from the run that was not stopped"
    )
    return Measured(words, [different == 0, *(fact for rank in ranks for fact in rank[0])])


def _restart(text: str, folder: str, optimizer: str, seed: int) -> tuple[list[float], int, int]:
    """Step, weights, optimizer and random numbers as they were; and of how many numbers how many differ later."""
    names, path = program(text), os.path.join(folder, "run.pt")
    ddp, steps = _training(names, optimizer, seed)
    _train(ddp, steps, 2)
    names["save"](path, ddp, steps, 2 + seed % 90)
    saved = _state(ddp, steps)
    _train(ddp, steps, 2)
    whole = _flat(ddp.module.state_dict().values())
    ddp, steps = _training(names, optimizer, seed + 1)
    step = names["load"](path, ddp, steps)
    same = [len(a) == len(b) and torch.equal(a, b) for a, b in zip(_state(ddp, steps), saved, strict=True)]
    _train(ddp, steps, 2)
    again = _flat(ddp.module.state_dict().values())
    return [step, *same], int((whole != again).sum()), len(whole)


def _state(ddp: nn.Module, optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """The weights, what the optimizer has kept, and the generator of this rank's GPU."""
    kept = [v for state in optimizer.state_dict()["state"].values() for v in state.values() if isinstance(v, Tensor)]
    return [_flat(ddp.parameters()), _flat([torch.zeros(1), *kept]), _flat([torch.cuda.get_rng_state()])]


def _slow(text: str, folder: str, seed: int) -> int:
    """Rank 0 writes slowly, until rank 1 has read or `SLOW` seconds have gone by."""
    names, path, read = program(text), os.path.join(folder, "run.pt"), Path(folder, "read")
    ddp, steps = _training(names, "SGD", seed)
    names["save"](path, ddp, steps, 1)
    distributed.barrier()
    names["torch"] = _SlowTorch(read)
    names["save"](path, ddp, steps, 2 + seed % 90)
    step = names["load"](path, ddp, steps)
    if distributed.get_rank() == 1:
        read.touch()
    return step


class _SlowTorch:
    """torch, with a `save` that takes its time."""

    def __init__(self, read: Path) -> None:
        self._read = read

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def save(self, *args: Any, **kwargs: Any) -> None:
        until = time.monotonic() + SLOW
        while time.monotonic() < until and not self._read.exists():
            time.sleep(0.01)
        torch.save(*args, **kwargs)


def _training(names: dict[str, Any], optimizer: str, seed: int) -> tuple[Any, torch.optim.Optimizer]:
    ddp = DistributedDataParallel(_net(names, seed, dropout=0.5).cuda())
    torch.manual_seed(seed + 1 + distributed.get_rank())
    options = {"momentum": 0.9} if optimizer == "SGD" else {}
    return ddp, getattr(torch.optim, optimizer)(ddp.parameters(), lr=0.01, **options)


def _train(ddp: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    start = 8 * distributed.get_rank()
    for _ in range(steps):
        optimizer.zero_grad()
        ddp(*_batch(torch.arange(start, start + 8)))[0].mean().backward()
        optimizer.step()


def statistics(text: str, dark: float, seed: int) -> Measured:
    """A forward and a backward under DDP, where the pictures of rank 1 are darker."""
    ranks = on_two_ranks(_statistics, text, dark, seed)
    net = _net(program(text), seed)
    net(*_dark(dark))[0][:, 1].sum().backward()
    one, gradient = _statistics_of(net), _flat(p.grad for p in net.parameters())
    apart, off = ((ranks[0][0] - other).norm().item() / one.norm().item() for other in (ranks[1][0], one))
    wrong = (ranks[0][1] * 2 - gradient).norm().item() / gradient.norm().item()
    words = f"the running means of the ranks are {apart:.0%} apart, and rank 0's are {off:.0%} off those of one process"
    if apart < 1e-3 and off < 1e-3:
        words = f"the running means are those of one process, and the gradient is {wrong:.1%} off"
    same = torch.equal(ranks[0][1], ranks[1][1])
    facts = [apart < 1e-3, off < 1e-3, wrong < 1e-2, same]
    return Measured(words, facts, sound=all(facts))


def _statistics(text: str, dark: float, seed: int) -> tuple[Tensor, Tensor]:
    names, rank = program(text), distributed.get_rank()
    ddp = names["wrap"](_net(names, seed))
    ddp(*(tensor.chunk(2)[rank].cuda() for tensor in _dark(dark)))[0][:, 1].sum().backward()
    return _statistics_of(getattr(ddp, "module", ddp)), _flat(p.grad for p in ddp.parameters())


def _statistics_of(net: nn.Module) -> Tensor:
    return _flat(buffer for name, buffer in net.named_buffers() if "running_mean" in name)


def _dark(dark: float) -> list[Tensor]:
    images, boxes, labels = _batch(torch.arange(8), "cpu")
    return [torch.cat([images[:4], images[4:] * dark]), boxes, labels]


def masks(text: str, seed: int) -> Measured:
    """The weights of a new net, and what dropout draws on the GPU after it."""
    first, second, other = (on_two_ranks(_masks, text, own) for own in (seed, seed, seed + 50))
    alike = int((first[0][1] == first[1][1]).sum())
    facts = {
        "the ranks begin with different weights": torch.equal(first[0][0], first[1][0]),
        f"the ranks draw one mask: {alike} of 256 units are dropped or kept alike": alike < 200,
        "a second run begins with different weights": torch.equal(first[0][0], second[0][0]),
        "a second run draws different masks": all(torch.equal(a[1], b[1]) for a, b in zip(first, second, strict=True)),
        "a different seed gives the same weights": not torch.equal(first[0][0], other[0][0]),
        "a different seed draws the same masks": not any(
            torch.equal(a[1], b[1]) for a, b in zip(first, other, strict=True)
        ),
    }
    return _all_true(facts, "equal weights, and masks of their own that a second run repeats")


def _masks(text: str, seed: int) -> tuple[Tensor, Tensor]:
    torch.rand(distributed.get_rank() + 1, device="cuda")  # noqa: FL001 its own; who does not seed goes on from it
    net = program(text)["seed_rank"](seed)
    ones = torch.ones(8, 32, device="cuda")  # noqa: FL001 the rank's own
    return _flat(net.parameters()), (F.dropout(ones, 0.5) == 0).cpu()


def _net(names: dict[str, Any], seed: int, dropout: float = 0.0) -> nn.Module:
    torch.manual_seed(seed)
    return names["Detector"](dropout)


def _batch(rows: Tensor, device: str = "cuda") -> list[Tensor]:
    batch = pictures()
    return [tensor[rows].to(device) for tensor in (batch.images, batch.boxes, batch.labels)]


def _flat(tensors: Iterable[Tensor | None]) -> Tensor:
    """All numbers in a row; a parameter without a gradient has none."""
    return torch.cat([tensor.detach().flatten().cpu().double() for tensor in tensors if tensor is not None])


def _whole(parameter: Any) -> Tensor:
    whole = parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter
    return whole.detach().cpu().clone()


def _sample(numbers: Tensor, count: int = 20) -> list[float]:
    """Some of the numbers, from the first to the last, and their length."""
    picked = torch.linspace(0, len(numbers) - 1, count).long()
    return [*numbers.double()[picked].tolist(), numbers.double().norm().item()]


def _gradient_of(net: nn.Module, words: str) -> Measured:
    gradient = _flat(parameter.grad for parameter in net.parameters())
    return Measured(f"{words} is {gradient.norm():.1f} long", _sample(gradient / 100))


def _all_true(facts: dict[str, bool], right: str) -> Measured:
    """`facts`: the words for a program in which one of them is not true, the first of which are told."""
    untrue = [words for words, true in facts.items() if not true]
    return Measured(next(iter(untrue), right), [*facts.values()], sound=not untrue)


MEASURES: dict[str, Callable[..., Measured]] = {
    function.__name__: function
    for function in (memory, apart, still, devices, gradient, waiting, unseen, restart, statistics, masks)
}
