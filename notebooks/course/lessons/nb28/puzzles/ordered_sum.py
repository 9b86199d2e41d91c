"""Add the values of (rank, value) pairs in the order of their ranks, whatever order they arrived in."""

import math
from collections.abc import Sequence
from random import Random

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong

hints = (
    "(0.1 + 0.2) + 0.3 and 0.1 + (0.2 + 0.3) differ in the last bit. Try it.",
    "Sort before you add.",
    "`for _, value in sorted(arrived): total += value`",
)


def ordered_sum(arrived: Sequence[tuple[int, float]]) -> float:
    """The values of (rank, value) pairs added one by one in the order of their ranks, from 0.0 on."""
    total = 0.0
    for _, value in sorted(arrived):
        total += value
    return total


def cases(random: Random) -> Sequence[Case]:
    cases = [Case(([(1, 1e16), (2, -1e16), (0, 1.0)],)), Case(([(0, 0.1), (1, 0.2), (2, 0.3)],)), Case(([],))]
    for _ in range(16):
        parts = [(rank, round(random.uniform(-1, 1), 3)) for rank in range(random.choice([3, 5, 8, 300]))]
        random.shuffle(parts)
        cases.append(Case((parts,)))
    return cases


@wrong
def in_order_of_arrival(arrived: Sequence[tuple[int, float]]) -> float:
    """this is the sum in the order of arrival, as atomic additions on a GPU make it. In a different order the sum may
    have a different last bit.

    Source: pytorch/pytorch pull request 12217, 2018: index_add_, scatter_add_ and bincount on CUDA
    """
    total = 0.0
    for _, value in arrived:
        total += value
    return total


@wrong
def compensated(arrived: Sequence[tuple[int, float]]) -> float:
    """this sum was corrected for its rounding, as `math.fsum` does and, since Python 3.12, `sum`. torch adds plainly,
    and so does `total += value`.

    Source: python/cpython issue 100425, 2022: sum() of floats more accurate
    """
    # As `sum` adds floats since Python 3.12: by Neumaier's method, which keeps what rounding takes away.
    total = lost = 0.0
    for _, value in sorted(arrived):
        new = total + value
        lost += (total - new) + value if abs(total) >= abs(value) else (value - new) + total
        total = new
    return total + lost


@also(compensated)
def _(arrived):
    return math.fsum(value for _, value in sorted(arrived))
