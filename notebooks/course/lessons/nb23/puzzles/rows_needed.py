"""Which rows of the padded-out picture the output rows `first` to `last` are made of, as a pair: the first and the last
row, both included. Row 0 is the first row of the picture itself; a row of padding has a number outside of it.
"""

from collections.abc import Sequence
from random import Random

from course.kit.learn.agree import same_values
from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong

hints = (
    "Where does the window of output row 0 begin, if one row of padding is above the picture? And that of row 1?",
    "A window begins at `row * stride - padding`. From its first tap to its last there are `kernel - 1` gaps.",
    "`first * stride - padding, last * stride - padding + dilation * (kernel - 1)`",
)


def rows_needed(
    first: int, last: int, kernel: int, stride: int = 1, padding: int = 0, dilation: int = 1
) -> tuple[int, int]:
    return first * stride - padding, last * stride - padding + dilation * (kernel - 1)


def cases(random: Random) -> Sequence[Case]:
    fixed = [(0, 7, 3), (8, 15, 3, 1, 1), (0, 3, 3, 2, 1), (4, 7, 5, 2, 2), (2, 5, 3, 1, 2, 2), (3, 3, 1)]
    drawn = []
    for _ in range(20):
        first = random.randint(0, 9)
        settings = random.randint(1, 5), random.randint(1, 3), random.randint(0, 3), random.randint(1, 3)
        drawn.append((first, first + random.randint(0, 9), *settings))
    return [Case(case) for case in fixed + drawn]


agree = same_values


@wrong
def without_the_padding(first, last, kernel, stride=1, padding=0, dilation=1):
    """this is what a function gives that leaves the padding out. With a row of padding above the picture, the window of
    output row 0 begins one row before row 0.
    """
    return first * stride, last * stride + dilation * (kernel - 1)


@wrong
def without_the_stride(first, last, kernel, stride=1, padding=0, dilation=1):
    """this is what a function gives that leaves the stride out. From one output row to the next the window moves by
    `stride` rows.
    """
    return first - padding, last - padding + dilation * (kernel - 1)


@wrong
def without_the_dilation(first, last, kernel, stride=1, padding=0, dilation=1):
    """these are the rows without dilation. Three taps two rows apart reach over five rows, not three.

    Source: PaddlePaddle/Paddle issue 5242, 2017
    """
    return first * stride - padding, last * stride - padding + kernel - 1


@wrong
def kernel_times_dilation(first, last, kernel, stride=1, padding=0, dilation=1):
    """these are the rows of a window that reaches over `kernel * dilation` of them. There are only `kernel - 1` gaps
    between the taps.

    Source: NVIDIA/cutlass pull request 3526, 2026
    """
    return first * stride - padding, last * stride - padding + dilation * kernel - 1


@wrong
def one_row_more(first, last, kernel, stride=1, padding=0, dilation=1):
    """the second number is the row *after* the last one, as in a slice. The last row itself is asked for."""
    return first * stride - padding, last * stride - padding + dilation * (kernel - 1) + 1


@wrong
def a_slice_without_dilation(first, last, kernel, stride=1, padding=0, dilation=1):
    """the second number is the row after the last one, and dilation is left out."""
    return first * stride - padding, last * stride - padding + kernel


@wrong
def the_last_window_only_begins(first, last, kernel, stride=1, padding=0, dilation=1):
    """the second number is where the last window begins. It reaches over the rows below as well."""
    return first * stride - padding, last * stride - padding


@wrong
def cut_at_the_edge(first, last, kernel, stride=1, padding=0, dilation=1):
    """the first number is never below 0 here. Rows of padding are asked for, too: their numbers are negative."""
    top, bottom = rows_needed(first, last, kernel, stride, padding, dilation)
    return max(top, 0), bottom
