"""The image of shape (B, C, *size) that `columns = F.unfold(image, kernel)` was made of."""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor
from torch.nn import functional as F

from course.kit.learn.exercise import Case
from course.kit.learn.guarded import Guarded
from course.kit.learn.puzzle import wrong
from course.lessons.nb23.cases import close

hints = (
    "`F.fold` adds the copies of a pixel up. How many copies are there of each?",
    "Not the same number everywhere: a corner lies in one window. Fold something whose pixels are all 1.",
    "`F.fold(columns, size, kernel) / F.fold(torch.ones_like(columns), size, kernel)`",
)


def put_back(columns: Tensor, size: tuple[int, int], kernel: int) -> Tensor:
    """The image that `F.unfold(image, kernel)` was made of: every pixel the mean of its copies."""
    total = F.fold(columns, size, kernel)
    copies = F.fold(torch.ones_like(columns), size, kernel)
    return total / copies


def cases(random: Random) -> Sequence[Case]:
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    cases = []
    for _ in range(8):
        size, kernel = (random.randint(5, 9), random.randint(5, 9)), random.randint(2, 4)
        image = torch.rand(2, random.randint(1, 3), *size, generator=generator)
        cases.append(Guarded((F.unfold(image, kernel), size, kernel)))
    return cases


agree = close


@wrong
def fold_alone(columns, size, kernel):
    """this is what fold alone gives. It adds overlaps: a pixel in nine windows comes back nine times as bright.

    Source: pytorch/pytorch issue 7519, 2018; the post of this notebook, 2021, says the same
    """
    return F.fold(columns, size, kernel)


@wrong
def one_divisor_for_all(columns, size, kernel):
    """this is what comes out if all pixels are divided by one number. Those near the border lie in fewer windows, and
    turn dark.

    Source: pytorch/pytorch issue 67595, 2021
    """
    return F.fold(columns, size, kernel) / kernel**2
