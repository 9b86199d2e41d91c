"""For each point of `a`, shape (n, 3), return the number of the nearest point of `b`, shape (m, 3). Target: at the
worst moment two and a half times the bytes of n x m distances. (All differences have three times as many numbers.)
"""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong
from course.lessons.nbpuzzles.costs import InMemory, right_and_cheap, right_but_dear

hints = (
    "`a[:, None] - b` has n x m x 3 numbers. The square of a difference has three terms: what are they?",
    "The square of `a - b` is that of `a`, less twice their product, plus that of `b`. Only two of them depend on `b`.",
    "`return (b.square().sum(1) - 2 * a @ b.T).argmin(1)`, or `torch.cdist(a, b).argmin(1)`.",
)


def cases(random: Random) -> Sequence[Case]:
    torch.manual_seed(random.randrange(2**31))
    sizes = [(64, 96), (200, 50), (random.randint(50, 99), random.randint(50, 99))]
    return [InMemory((torch.randn(n, 3), torch.randn(m, 3)), peak=10 * n * m) for n, m in sizes]


def nearest(a: Tensor, b: Tensor) -> Tensor:
    return (b.square().sum(1) - 2 * (a @ b.T)).argmin(1)


agree = right_and_cheap


@wrong(recognise=lambda cases, given: right_but_dear(cases, given, nearest))
def every_difference(a: Tensor, b: Tensor) -> Tensor:
    """the numbers are right, and the memory holds every difference on its own. For 10,000 points each that is 1.2 GB,
    and on virtual GPUs as on real ones it grows with the product of both counts.
    """
    return (a[:, None] - b).square().sum(2).argmin(1)


@wrong
def farthest(a: Tensor, b: Tensor) -> Tensor:
    """these are the farthest points: the sign of the distances is the other way round."""
    return (2 * (a @ b.T) - b.square().sum(1)).argmin(1)
