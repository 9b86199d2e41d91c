"""The RPN's output (B, 5 * A, h, w), whose channels are five numbers an anchor, anchor after anchor, as one row for
each anchor: (B, h * w * A, 5), row by row of the map and A at each cell, as the anchors stand.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb12.cases import by_anchors, by_columns, counting, five_groups, reshape_alone

hints = (
    "Channels are the second dimension and must become the last: what belongs to one cell stands together.",
    "A view alone changes shapes, not the order in memory: `permute` first.",
    "`output.permute(0, 2, 3, 1).reshape(len(output), -1, 5)`",
)


def same_tensor(given: Any, expected: Tensor) -> bool:
    return isinstance(given, Tensor) and given.shape == expected.shape and torch.equal(given, expected)


def rows_of_anchors(output: Tensor) -> Tensor:
    return output.permute(0, 2, 3, 1).reshape(len(output), -1, 5)


def cases(random: Random) -> Sequence[Case]:
    """Outputs (B, 5 * A, h, w) in which every number tells where it stands."""
    sizes = [(1, 1, 2, 3), (2, 3, 2, 2), (1, 2, 3, 1)]
    sizes += [tuple(random.randint(1, 4) for _ in range(4)) for _ in range(8)]  # type: ignore[misc]
    return [Case((counting(b, 5 * a, h, w),)) for b, a, h, w in sizes]


agree = same_tensor


@wrong
def two_conventions(*given):
    """this table comes of reading the channels as five groups of A, where they are A groups of five. Shapes fit, and
    every anchor learns from the others' numbers.

    Source: jwyang/fpn.pytorch issue 6, 2018: one convention in the softmax, the other in the loss
    """
    return five_groups(*given)


@also(two_conventions)
def five_long_groups(output: Tensor) -> Tensor:
    return output.reshape(len(output), 5, -1).transpose(1, 2)


@wrong
def column_by_column(*given):
    """this table goes through the map column by column. The anchors come row by row.

    Source: jwyang/faster-rcnn.pytorch issue 501, 2019, of an RPN whose anchors were laid the other way
    """
    return by_columns(*given)


@wrong
def anchor_after_anchor(*given):
    """this table has all cells of the first anchor before those of the second. The A anchors of a cell are neighbours.

    Source: jwyang/fpn.pytorch issue 6, 2018, where boxes and scores were counted in the two ways
    """
    return by_anchors(*given)


@wrong
def no_permute(*given):
    """this is what a change of the shape alone gives: a row then holds five neighbours of one channel.

    Source: yihong-97/Source-free-IAPC pull request 6, 2024, puts a permute in the place of a view
    """
    return reshape_alone(*given)


@wrong
def a_row_for_each_cell(output: Tensor) -> Tensor:
    """this table has a row for each cell, with the numbers of all its anchors. A row for each anchor has five."""
    return output.permute(0, 2, 3, 1).flatten(1, 2)


@wrong
def the_sizes_of_this_notebook(output: Tensor) -> Tensor:
    """this is what a function gives in which sizes of this notebook's output are written. It has to do for any number
    of pictures, anchors and cells; ask `output.shape`, or leave one size to -1.
    """
    return output.permute(0, 2, 3, 1).reshape(len(output), -1, 3, 5).flatten(1, 2)


@also(the_sizes_of_this_notebook)
def this_output(output: Tensor) -> Tensor:
    return output.permute(0, 2, 3, 1).reshape(3, 768, 5)
