"""RoI pooling of one map (H, W) at stride 16: the largest feature of each of count x count bins of a box."""

import math
from collections.abc import Callable, Sequence
from random import Random

import torch
from torch import Tensor
from torch.nn.functional import adaptive_max_pool2d

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb15.cases import close
from frcnn_lite import ops

hints = (
    "Round the four corners, call `edges` for the rows and for the columns, and go through all pairs of bins.",
    "Python's `round` takes halves to the even number. `math.floor(x + 0.5)` does it for corners above zero; "
    "and below zero, where does a half go that is rounded *away* from zero? `ops.round_half_away` knows.",
    "An empty bin keeps its zero. The others: `out[i, j] = plane[top:bottom, left:right].max()`.",
)


def round_half_away(x: float) -> int:
    """The nearest whole number, halves away from zero."""
    whole = int(x)  # cuts the fraction off
    return whole + int(abs(x - whole) >= 0.5) * (1 if x > 0 else -1)


def edges(first: int, last: int, count: int, limit: int) -> list[tuple[int, int]]:
    """Where each of `count` bins over the cells first to last starts and ends, cut to a map of `limit` cells."""
    size = max(last - first + 1, 1)
    ends = [(first + i * size // count, first - (-(i + 1) * size // count)) for i in range(count)]
    return [(min(max(start, 0), limit), min(max(end, 0), limit)) for start, end in ends]


def pool_by_hand(plane: Tensor, box: Sequence[float], count: int) -> Tensor:
    corners = ops.round_half_away(torch.tensor(box) / 16)  # noqa: FL002 exercises are on the CPU
    x1, y1, x2, y2 = corners.int().tolist()
    out = torch.zeros(count, count)  # noqa: FL002 exercises are on the CPU
    for i, (top, bottom) in enumerate(edges(y1, y2, count, plane.shape[0])):
        for j, (left, right) in enumerate(edges(x1, x2, count, plane.shape[1])):
            if top < bottom and left < right:
                out[i, j] = plane[top:bottom, left:right].max()
    return out


def _pool(plane: Tensor, corners: Sequence[int], count: int, limits: Sequence[int] = ()) -> Tensor:
    """The rule from its second step on, for corners in cells. limits: the (H, W) that bins are cut to."""
    x1, y1, x2, y2 = corners
    height, width = limits or plane.shape
    out = torch.zeros(count, count)  # noqa: FL002 exercises are on the CPU
    for i, (top, bottom) in enumerate(edges(y1, y2, count, height)):
        for j, (left, right) in enumerate(edges(x1, x2, count, width)):
            if top < bottom and left < right:
                out[i, j] = plane[top:bottom, left:right].max()
    return out


def _empty_bins(largest: Callable[[Tensor], Tensor], plane: Tensor, box: Sequence[float], count: int) -> Tensor:
    x1, y1, x2, y2 = (round_half_away(corner / 16) for corner in box)
    rows, columns = edges(y1, y2, count, plane.shape[0]), edges(x1, x2, count, plane.shape[1])
    return torch.stack([torch.stack([largest(plane[t:b, l:r]) for l, r in columns]) for t, b in rows])  # noqa: E741


def _minus_infinity(crop: Tensor) -> Tensor:
    return crop.max() if crop.numel() else torch.tensor(-math.inf)  # noqa: FL002 exercises are on the CPU


def cases(random: Random) -> Sequence[Case]:
    counting = torch.arange(36.0).view(6, 6)  # noqa: FL002 exercises are on the CPU
    boxes = [(24, 24, 40, 40), (0, 8, 70, 90), (56, 40, 120, 96), (-24, 8, 20, 40)]
    cases = [Case((counting, box, count)) for box in boxes for count in (1, 2)]
    while len(cases) < 24:
        height, width, count = random.randint(4, 9), random.randint(4, 9), random.choice((1, 2, 4))
        plane = torch.tensor([[float(random.randint(-99, 99)) for _ in range(width)] for _ in range(height)])
        x, y = random.randint(-30, 12 * width), random.randint(-30, 12 * height)
        box = (x, y, x + random.randint(0, 16 * width), y + random.randint(0, 16 * height))
        cases.append(Case((plane, box, count)))
    return cases


agree = close


@wrong
def bankers_rounding(plane: Tensor, box: Sequence[float], count: int) -> Tensor:
    """this is what comes out when halves go to the even number, as with round and torch.round: 1.5 and 2.5 both become
    2.

    Source: pytorch/vision issue 923, 2019: a slow RoI pooling with torch.round that differs at scale 0.5
    """
    return _pool(plane, [round(corner / 16) for corner in box], count)


@wrong
def the_last_cell_left_out(plane: Tensor, box: Sequence[float], count: int) -> Tensor:
    """here the region ends before its last cell. A region from cell 0 to cell 7 has eight cells.

    Source: facebookresearch/maskrcnn-benchmark issue 328, 2019: (0, 0, 7, 7) expected to be 7 x 7
    """
    x1, y1, x2, y2 = (round_half_away(corner / 16) for corner in box)
    return _pool(plane, (x1, y1, x2 - 1, y2 - 1), count)


@wrong
def half_added_and_floored(plane: Tensor, box: Sequence[float], count: int) -> Tensor:
    """this is what floor(x + 0.5) or int(x + 0.5) gives. Below zero both go upwards: -1.5 becomes -1, and away from
    zero is -2.
    """
    return _pool(plane, [math.floor(corner / 16 + 0.5) for corner in box], count)


@also(half_added_and_floored)
def cut_after_a_half(plane: Tensor, box: Sequence[float], count: int) -> Tensor:
    return _pool(plane, [int(corner / 16 + 0.5) for corner in box], count)


@wrong
def rounded_down(plane: Tensor, box: Sequence[float], count: int) -> Tensor:
    """here the corners are rounded down. Step 1 of the rule takes the nearest whole number."""
    return _pool(plane, [math.floor(corner / 16) for corner in box], count)


@wrong
def the_cells_that_are_covered(plane: Tensor, box: Sequence[float], count: int) -> Tensor:
    """these are the maxima of the cells that the box covers. That would be the better region, and it is not what the
    rule says: it rounds both corners, and both corner cells belong to the region.
    """
    x1, y1, x2, y2 = box
    low, high = (math.floor(x1 / 16), math.floor(y1 / 16)), (math.ceil(x2 / 16) - 1, math.ceil(y2 / 16) - 1)
    return _pool(plane, (*low, *high), count)


@wrong
def x_and_y_exchanged(plane: Tensor, box: Sequence[float], count: int) -> Tensor:
    """x and y are exchanged somewhere: in the box, in the output, or in the sizes of the map. x counts columns and y
    counts rows, and a map is (H, W), rows first.

    Source: boxes with y first: pytorch/vision issue 1856, 2020
    """
    x1, y1, x2, y2 = box
    return pool_by_hand(plane, (y1, x1, y2, x2), count)


@also(x_and_y_exchanged)
def turned_over(plane: Tensor, box: Sequence[float], count: int) -> Tensor:
    return pool_by_hand(plane, box, count).T


@also(x_and_y_exchanged)
def limits_exchanged(plane: Tensor, box: Sequence[float], count: int) -> Tensor:
    """The rows are cut to the width of the map, and the columns to its height."""
    return _pool(plane, [round_half_away(corner / 16) for corner in box], count, plane.shape[::-1])


@wrong
def cropped_first(plane: Tensor, box: Sequence[float], count: int) -> Tensor:
    """this is what comes out when the region is cut to the map and then divided. The rule divides first and cuts the
    bins afterwards, so for a box that crosses the border the bins are different ones, and some are empty.
    """
    height, width = plane.shape
    x1, y1, x2, y2 = (round_half_away(corner / 16) for corner in box)
    (x1, x2), (y1, y2) = (
        [min(max(k, 0), most - 1) for k in (a, b)] for a, b, most in ((x1, x2, width), (y1, y2, height))
    )
    return adaptive_max_pool2d(plane[None, y1 : y2 + 1, x1 : x2 + 1], count)[0]


@wrong
def the_maximum_of_nothing(*given):
    """this is what an empty bin gives that is asked for its maximum. It has none; by step 5 of the rule its value
    is 0.
    """
    return _empty_bins(torch.max, *given)


@also(the_maximum_of_nothing)
def _(*given):
    return _empty_bins(torch.amax, *given)


@also(the_maximum_of_nothing)
def _(*given):
    return _empty_bins(_minus_infinity, *given)
