"""Learning-rate schedules as compositions of `torch.optim.lr_scheduler`: constant, milestones, poly and cosine.

    scheduler = cosine(optimizer, 10_000, warmup_steps=500)

Call `scheduler.step()` once after every optimizer step. Each schedule multiplies the rate that a parameter group starts
from, so groups keep their ratios; each stays defined after its last step; and its `state_dict()` is plain data, so a
resumed run goes on where the first one stopped. Steps are counted from 0. Each schedule names its sources; the linear
warm-up is that of P. Goyal et al., "Accurate, Large Minibatch SGD", 2017.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from torch import nn
from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import (
    ConstantLR,
    CosineAnnealingLR,
    LinearLR,
    LRScheduler,
    MultiStepLR,
    PolynomialLR,
    SequentialLR,
)

WARMUP_START = 0.1  # fraction of the full learning rate at step 0 of a warm-up


def constant(optimizer: Optimizer, *, warmup_steps: int = 0) -> LRScheduler:
    """The groups' own rates, after a linear warm-up. Raises ValueError for a negative `warmup_steps`."""
    return _after_warmup(optimizer, warmup_steps, [ConstantLR(optimizer, factor=1.0, total_iters=0)])


def milestones(optimizer: Optimizer, drops: Sequence[int], *, gamma: float = 0.1, warmup_steps: int = 0) -> LRScheduler:
    """Warm-up, then the rate falls at each step in `drops`.

    Args:
        optimizer: whose groups' rates are multiplied.
        drops: steps, rising, counted from the start of the run and not from the end of its warm-up.
        gamma: the factor at each of them.
        warmup_steps: length of the linear warm-up.

    Raises:
        ValueError: `drops` do not increase or begin inside of the warm-up, or `warmup_steps` is negative.
    """
    bounds = [warmup_steps, *drops]
    if any(late <= early for early, late in pairwise(bounds)):
        raise ValueError(f"`drops` must increase and lie after the warm-up of {warmup_steps} steps, got {list(drops)}")
    after = [drop - warmup_steps for drop in drops]
    return _after_warmup(optimizer, warmup_steps, [MultiStepLR(optimizer, after, gamma)])


def poly(optimizer: Optimizer, total_steps: int, *, power: float = 0.9, warmup_steps: int = 0) -> LRScheduler:
    """Warm-up, then (1 - t / T) ** power over the T steps that are left; 0 from `total_steps` on, however long.

    W. Liu, A. Rabinovich, A. C. Berg, "ParseNet", 2015; the power of 0.9 is DeepLab's (L.-C. Chen et al., 2016).

    Args:
        optimizer: whose groups' rates are multiplied.
        total_steps: length of the run, with its warm-up.
        power: 1 is a straight line; a smaller one stays high for longer.
        warmup_steps: length of the linear warm-up.

    Raises:
        ValueError: no step is left after the warm-up, or `warmup_steps` is negative.
    """
    left = _steps_after(warmup_steps, total_steps)
    return _after_warmup(optimizer, warmup_steps, [PolynomialLR(optimizer, left, power)])


def cosine(optimizer: Optimizer, total_steps: int, *, warmup_steps: int = 0) -> LRScheduler:
    """Warm-up, then half a cosine down to 0 at `total_steps`, and 0 from there on (`CosineAnnealingLR` alone rises).

    I. Loshchilov and F. Hutter, "SGDR", ICLR 2017.

    Args:
        optimizer: whose groups' rates are multiplied.
        total_steps: length of the run, with its warm-up.
        warmup_steps: length of the linear warm-up.

    Raises:
        ValueError: no step is left after the warm-up, or `warmup_steps` is negative.
    """
    left = _steps_after(warmup_steps, total_steps)
    parts = [CosineAnnealingLR(optimizer, T_max=left), ConstantLR(optimizer, factor=0.0, total_iters=sys.maxsize)]
    return _after_warmup(optimizer, warmup_steps, parts, [left])


def preview(
    schedule: Callable[[Optimizer], LRScheduler], rates: Mapping[str, float], steps: int
) -> dict[str, list[float]]:
    """The learning rate of every group at steps 0 .. `steps` - 1, without a model.

    Args:
        schedule: builds the scheduler, such as `lambda optimizer: poly(optimizer, 100)`.
        rates: group name -> own rate.
    """
    optimizer = SGD([{"params": [nn.Parameter()], "lr": rate} for rate in rates.values()])
    scheduler = schedule(optimizer)
    taken: dict[str, list[float]] = {name: [] for name in rates}
    for _ in range(steps):
        for values, group in zip(taken.values(), optimizer.param_groups, strict=True):
            values.append(group["lr"])
        optimizer.step()
        scheduler.step()
    return taken


def _steps_after(warmup_steps: int, total_steps: int) -> int:
    if total_steps <= warmup_steps:
        raise ValueError(f"`total_steps` must be more than the {warmup_steps} steps of warm-up, got {total_steps}")
    return total_steps - warmup_steps


def _after_warmup(
    optimizer: Optimizer, warmup_steps: int, parts: list[LRScheduler], lengths: Sequence[int] = ()
) -> LRScheduler:
    """`parts` one after the other, each but the last with its length, behind a linear warm-up.

    `SequentialLR` restarts each part at its own step 0, which is why milestones above are shifted.
    """
    if warmup_steps < 0:
        raise ValueError(f"`warmup_steps` must be at least 0, got {warmup_steps}")
    if warmup_steps > 0:
        parts = [LinearLR(optimizer, start_factor=WARMUP_START, total_iters=warmup_steps), *parts]
        lengths = [warmup_steps, *lengths]
    if len(parts) == 1:
        return parts[0]
    ends = [sum(lengths[: k + 1]) for k in range(len(lengths))]
    return SequentialLR(optimizer, parts, milestones=ends)
