"""(7, 3) gives kernel 3 and stride 2; (10, 4) gives None."""

from collections.abc import Sequence
from random import Random

from course.kit.learn.agree import same_values
from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong

hints = (
    "Window i starts at floor(i * size / output). When do these starts lie evenly?",
    "Only the remainder of size / output matters, and two remainders are good.",
    "`None` unless `size % output` is 0 or 1 and `size >= output`; otherwise the formula of the post.",
)


def fixed_window(size: int, output: int) -> tuple[int, int] | None:
    """(kernel, stride) of the fixed pooling equal to adaptive pooling of `size` cells to `output`; None if none is."""
    stride, rest = divmod(size, output)
    if stride == 0 or rest > 1:
        return None
    return size - (output - 1) * stride, stride


def cases(random: Random) -> Sequence[Case]:
    fixed = [(7, 3), (10, 4), (8, 2), (5, 1), (6, 6), (13, 4), (64, 7), (11, 4), (1, 3), (3, 4)]
    drawn = []
    for _ in range(24):
        output = random.randint(2, 24)
        drawn.append((output * random.randint(0, 6) + random.choice([0, 1, 1, random.randint(2, 30)]) or 1, output))
    return [Case(sizes) for sizes in fixed + drawn]


agree = same_values


@wrong
def formula_everywhere(size: int, output: int) -> tuple[int, int]:
    """this is the formula for every pair. From 10 cells to 4 the shape is right and the numbers are not: the adaptive
    windows start at 0, 2, 5 and 7, and no stride does that.

    Source: the post of this notebook, 2021, gives the formula without a condition
    """
    stride = size // output
    return size - (output - 1) * stride, stride


@wrong
def divisible_only(size: int, output: int) -> tuple[int, int] | None:
    """this refuses whatever does not divide. A remainder of 1 is exact too: 7 to 3 is windows of 3, 2 apart.

    Source: pytorch/pytorch pull request 9711, a comment of 2019, promises equality for divisible sizes only
    """
    return None if size % output else formula_everywhere(size, output)
