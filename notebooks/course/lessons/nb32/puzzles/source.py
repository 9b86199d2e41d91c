"""Pixel 0 of 8, made of 4, lies at -0.25: its middle is a quarter pixel before the first middle."""

from collections.abc import Sequence
from random import Random
from typing import Any

from course.kit.learn.agree import near
from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong

hints = (
    "A pixel is an area: the middle of pixel i lies at i + 0.5.",
    "Scale the middle by size / output, then go back from middles to indices.",
    "`(i + 0.5) * size / output - 0.5`",
)


def source(i: int, size: int, output: int) -> float:
    """Where output pixel `i` of `output` lies between the `size` input pixels: bilinear with align_corners=False."""
    return (i + 0.5) * size / output - 0.5


def cases(random: Random) -> Sequence[Case]:
    fixed = [(0, 4, 8), (7, 4, 8), (3, 6, 12), (2, 5, 5), (1, 8, 4)]
    drawn = []
    for _ in range(20):
        output = random.randint(3, 40)
        drawn.append((random.randrange(output), random.randint(2, 40), output))
    return [Case(numbers) for numbers in fixed + drawn]


def _same_place(given: Any, expected: float) -> bool:
    """In pixels: torch's float32 has fewer digits than the right number."""
    return near(given, expected, absolute=1e-5)


agree = _same_place


@wrong
def corner_to_corner(i, size, output):
    """here the index is scaled, so pixel 0 lands on pixel 0 and the picture moves up and left. It is what operator set
    9 says, and it is off by half a pixel.

    Source: pytorch/pytorch issue 22906, 2019, exports bilinear upsampling and gets other numbers
    """
    return i * size / output


@wrong
def aligned_corners(i, size, output):
    """here the first pixel is on the first and the last on the last: that is align_corners=True.

    Source: pytorch/pytorch issue 15120, 2018, finds Caffe2 doing so where PyTorch does not
    """
    return i * (size - 1) / (output - 1)
