"""Places at which a window fits along a side of `size` pixels."""

from collections.abc import Sequence
from random import Random

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong

hints = (
    "Without stride, padding and dilation it is `size - kernel + 1`: the last place is where the window ends.",
    "Dilation spreads the taps: how many pixels lie from the first tap to the last, both included?",
    "`span = dilation * (kernel - 1) + 1`, then `(size + 2 * padding - span) // stride + 1`.",
)


def positions(size: int, kernel: int, stride: int = 1, padding: int = 0, dilation: int = 1) -> int:
    """Places at which the window fits along one side."""
    span = dilation * (kernel - 1) + 1
    return (size + 2 * padding - span) // stride + 1


def cases(random: Random) -> Sequence[Case]:
    fixed = [(8, 3), (8, 3, 2), (8, 3, 2, 1), (64, 3, 2, 1, 2), (6, 3, 1, 0, 2), (9, 4, 3, 2, 2), (1, 1)]
    drawn = [
        (random.randint(16, 64), random.randint(1, 5), random.randint(1, 3), random.randint(0, 3), random.randint(1, 3))
        for _ in range(30)
    ]
    return [Case(case) for case in [*fixed, *drawn]]


@wrong
def forgets_dilation(size, kernel, stride=1, padding=0, dilation=1):
    """this is the count without dilation. Three taps two pixels apart reach over five pixels, not three.

    Source: PaddlePaddle/Paddle issue 5242, 2017
    """
    return (size + 2 * padding - kernel) // stride + 1


@wrong
def kernel_times_dilation(size, kernel, stride=1, padding=0, dilation=1):
    """this is the count for a span of `kernel * dilation`. There are only `kernel - 1` gaps between the taps.

    Source: NVIDIA/cutlass pull request 3526, 2026
    """
    return (size + 2 * padding - kernel * dilation) // stride + 1


@wrong
def plus_one_too_early(size, kernel, stride=1, padding=0, dilation=1):
    """this is the count if one is added before the division by the stride. The first place counts as one, whatever the
    stride.

    Source: the formula once in torch's documentation, torch/nn issue 945, 2016
    """
    return (size + 2 * padding - dilation * (kernel - 1) + 1) // stride + 1
