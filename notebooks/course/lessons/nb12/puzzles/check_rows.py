"""A test: it calls `rows(output)` with an output (B, 5 * A, h, w) of its own, and raises an AssertionError unless every
number arrives in the row of its anchor. It passes on right programs and fails on wrong ones.
"""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

import torch
from torch import Tensor

from course.kit.learn.exercise import Case, Program, Trial
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb12.cases import (
    by_anchors,
    by_columns,
    counting,
    five_groups,
    reshape_alone,
    rows_of_anchors,
)

hints = (
    "You choose the numbers of `output`. Which ones would tell you where each of them came from?",
    "`torch.arange(...)`, with more than one anchor, a map that is not square, and a look at every row.",
    "Anchor a of cell (y, x) has row `(y * w + x) * A + a`, and it holds `output[:, 5 * a : 5 * a + 5, y, x]`.",
)


Rows = Callable[[Tensor], Tensor]


def _moved(k: int, output: Tensor) -> Tensor:
    return rows_of_anchors(output).roll(k, dims=1)


def _pictures_mixed(output: Tensor) -> Tensor:
    return output.permute(2, 3, 0, 1).reshape(len(output), -1, 5)


def _first_picture_for_all(output: Tensor) -> Tensor:
    return rows_of_anchors(output[:1]).expand(len(output), -1, -1)


def _height_for_width(output: Tensor) -> Tensor:
    """Cell (y, x) is put at y * h + x, where y * w + x is right: no difference on a square map."""
    height, width = output.shape[2:]
    cells = rows_of_anchors(output).unflatten(1, (height * width, -1))
    places = (torch.arange(height)[:, None] * height + torch.arange(width)).flatten()
    table = torch.zeros_like(cells)
    table[:, places.clamp(max=height * width - 1)] = cells
    return table.flatten(1, 2)


def cases(random: Random) -> Sequence[Case]:
    """Two right programs and eleven wrong ones."""
    right: dict[str, Rows] = {
        "channels moved to the end": rows_of_anchors,
        "cells first, then five numbers at a time": lambda output: (
            output.flatten(2).transpose(1, 2).unflatten(2, (-1, 5)).flatten(1, 2)
        ),
    }
    wrong: dict[str, Rows] = {
        "reshape alone": reshape_alone,
        "five groups of A": five_groups,
        "column by column": by_columns,
        "anchor after anchor": by_anchors,
        "five long rows": lambda output: rows_of_anchors(output).transpose(1, 2),
        "pictures mixed": _pictures_mixed,
        "the first picture for all": _first_picture_for_all,
        "the height in the place of the width": _height_for_width,
        "the deltas lost": lambda output: rows_of_anchors(output) * torch.tensor([1, 0, 0, 0, 0]),
    }
    for k in random.sample(range(1, 40), 2):
        wrong[f"all rows moved by {k}"] = partial(_moved, k)
    return [Trial((Program(f"rows: {name}", rows),)) for name, rows in {**right, **wrong}.items()]


def check_rows(rows: Rows) -> None:
    """Every number says where it comes from: picture, channel, row and column."""
    batch, anchors, height, width = 2, 3, 4, 5
    output = torch.arange(batch * 5 * anchors * height * width).view(batch, 5 * anchors, height, width)
    table = rows(output)
    assert table.shape == (batch, height * width * anchors, 5)
    for y in range(height):
        for x in range(width):
            for a in range(anchors):
                expected = output[:, 5 * a : 5 * a + 5, y, x]
                assert torch.equal(table[:, (y * width + x) * anchors + a], expected), (y, x, a)


def _in_place(shape: tuple[int, int, int, int], rows: Rows) -> None:
    """A right look at every number of an output whose shape does not bring everything to light."""
    output = counting(*shape)
    assert torch.equal(rows(output), rows_of_anchors(output))


@wrong
def shapes_only(rows: Rows) -> None:
    """this is how a test ends that looks at the shape alone. The shape can be right with every number in a wrong place.

    Source: tenstorrent/pytorch2.0_ttnn pull request 311, 2024, whose tests of permute compare sizes
    """
    assert rows(torch.rand(2, 15, 4, 5)).shape == (2, 60, 5)  # noqa: FL002 on the CPU


@wrong
def the_first_rows_only(rows: Rows) -> None:
    """this is how a test ends that looks at the first rows. A program that goes through the map column by column, or
    anchor after anchor, has the first row right.

    Source: jwyang/faster-rcnn.pytorch issue 501, 2019: the orders differ from the second cell on
    """
    output = counting(2, 15, 4, 5)
    assert torch.equal(rows(output)[:, 0], output[:, :5, 0, 0])


@also(the_first_rows_only)
def first_picture_and_row(rows: Rows) -> None:
    output = counting(2, 15, 4, 5)
    assert torch.equal(rows(output)[0, 0], output[0, :5, 0, 0])


@also(the_first_rows_only)
def first_cell_only(rows: Rows) -> None:
    output = counting(2, 15, 4, 5)
    assert torch.equal(rows(output)[:, :3], output[:, :, 0, 0].unflatten(1, (3, 5)))


@also(the_first_rows_only)
def first_picture_and_cell(rows: Rows) -> None:
    output = counting(2, 15, 4, 5)
    assert torch.equal(rows(output)[0, :3], output[0, :, 0, 0].unflatten(0, (3, 5)))


@wrong
def the_first_picture_only(rows: Rows) -> None:
    """this is how a test ends that looks at the rows of the first picture. A program that returns them for every
    picture of the batch passes.
    """
    output = counting(2, 15, 4, 5)
    assert torch.equal(rows(output)[0], rows_of_anchors(output)[0])


@wrong
def logits_only(rows: Rows) -> None:
    """this is how a test ends that looks at the first number of each row. A program that loses the four deltas
    passes.
    """
    output = counting(2, 15, 4, 5)
    assert torch.equal(rows(output)[..., 0], rows_of_anchors(output)[..., 0])


@wrong
def half_of_the_place(rows: Rows) -> None:
    """this is how a test ends whose numbers tell the channel that they come from, or the cell, and not both. A program
    that mixes up the other one passes. Let every number be a different one.
    """
    output = torch.arange(15).view(1, 15, 1, 1).repeat(2, 1, 4, 5)
    assert torch.equal(rows(output), rows_of_anchors(output))


@also(half_of_the_place)
def cells_only(rows: Rows) -> None:
    output = torch.arange(20).view(1, 1, 4, 5).repeat(2, 15, 1, 1)
    assert torch.equal(rows(output), rows_of_anchors(output))


@wrong
def in_any_order(rows: Rows) -> None:
    """this is how a test ends that sees that no number is lost, and not where it is: the sum is the same in any
    order.
    """
    output = counting(2, 15, 4, 5)
    assert rows(output).sum() == output.sum()


@also(in_any_order)
def the_sum_and_the_shape(rows: Rows) -> None:
    output = counting(2, 15, 4, 5)
    assert rows(output).shape == (2, 60, 5)
    assert rows(output).sum() == output.sum()


@wrong
def one_wrong_program(rows: Rows) -> None:
    """this is how a test ends that refuses the wrong program of this notebook, and lets all other wrong ones pass. Say
    what is right, not what is wrong.
    """
    output = counting(2, 15, 4, 5)
    assert not torch.equal(rows(output), reshape_alone(output))


@wrong
def expects_the_reshape(rows: Rows) -> None:
    """this is how a test ends that wants what `reshape` alone gives, which is the wrong order. It fails on the right
    programs.
    """
    output = counting(2, 15, 4, 5)
    assert torch.equal(rows(output), reshape_alone(output))


@wrong
def one_anchor(*given):
    """this is how a test ends that has one anchor at each cell. Then five groups of one are one group of five, and a
    program that mixes up the two passes.

    Source: jwyang/fpn.pytorch issue 6, 2018: with one anchor its two conventions are the same
    """
    return _in_place((2, 5, 4, 5), *given)


for shape in ((1, 5, 4, 5), (1, 5, 4, 4)):
    also(one_anchor)(partial(_in_place, shape))


@wrong
def one_picture(*given):
    """this is how a test ends that has one picture. A program that mixes the pictures of a batch passes."""
    return _in_place((1, 15, 4, 5), *given)


@wrong
def a_square_map(*given):
    """this is how a test ends whose map is as high as it is wide. A program that takes the height for the width
    passes.
    """
    return _in_place((2, 15, 4, 4), *given)


@wrong
def one_picture_and_a_square_map(*given):
    """this is how a test ends that has one picture, and a map that is as high as it is wide. A program that mixes the
    pictures of a batch passes, and so does one that takes the height for the width.
    """
    return _in_place((1, 15, 4, 4), *given)


@wrong
def all_numbers_alike(rows: Rows) -> None:
    """this is how a test ends in which every place has the same number, so nobody can see which of them moved."""
    assert torch.equal(rows(torch.ones(2, 15, 4, 5)), torch.ones(2, 60, 5))  # noqa: FL002 on the CPU


@wrong
def never_fails(rows: Rows) -> bool:
    """this test lets every program pass, as one does that never raises anything. A test that *returns* False has
    passed; write `assert`.

    Source: pytest warns about tests that return something since version 7.2, 2022
    """
    output = counting(2, 15, 4, 5)
    return torch.equal(rows(output), rows_of_anchors(output))
