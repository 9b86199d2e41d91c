"""Exercises of notebook 12: a row for each anchor, the test that catches it, and the names of regions."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

import torch
from torch import Tensor

from course.kit.learn.exercise import Case, Exercise, Mistake, Program, Trial

Rows = Callable[[Tensor], Tensor]


def same_tensor(given: Any, expected: Tensor) -> bool:
    return isinstance(given, Tensor) and given.shape == expected.shape and torch.equal(given, expected)


def rows_of_anchors(output: Tensor) -> Tensor:
    return output.permute(0, 2, 3, 1).reshape(len(output), -1, 5)


def _five_groups(output: Tensor) -> Tensor:
    by_number = output.reshape(len(output), 5, -1, *output.shape[2:])
    return by_number.permute(0, 3, 4, 2, 1).reshape(len(output), -1, 5)


def _column_by_column(output: Tensor) -> Tensor:
    return output.permute(0, 3, 2, 1).reshape(len(output), -1, 5)


def _reshape_alone(output: Tensor) -> Tensor:
    return output.reshape(len(output), -1, 5)


def _anchor_after_anchor(output: Tensor) -> Tensor:
    by_anchor = output.reshape(len(output), -1, 5, *output.shape[2:])
    return by_anchor.permute(0, 1, 3, 4, 2).reshape(len(output), -1, 5)


def _five_long_groups(output: Tensor) -> Tensor:
    return output.reshape(len(output), 5, -1).transpose(1, 2)


def _a_row_for_each_cell(output: Tensor) -> Tensor:
    return output.permute(0, 2, 3, 1).flatten(1, 2)


def _three_anchors(output: Tensor) -> Tensor:
    return output.permute(0, 2, 3, 1).reshape(len(output), -1, 3, 5).flatten(1, 2)


def _this_output(output: Tensor) -> Tensor:
    return output.permute(0, 2, 3, 1).reshape(3, 768, 5)


def _output_cases(random: Random) -> Sequence[Case]:
    """Outputs (B, 5 * A, h, w) in which every number tells where it stands."""
    sizes = [(1, 1, 2, 3), (2, 3, 2, 2), (1, 2, 3, 1)]
    sizes += [tuple(random.randint(1, 4) for _ in range(4)) for _ in range(8)]  # type: ignore[misc]
    return [Case((_counting(b, 5 * a, h, w),)) for b, a, h, w in sizes]


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


def _programs(random: Random) -> Sequence[Case]:
    """Two right programs and eleven wrong ones."""
    right: dict[str, Rows] = {
        "channels moved to the end": rows_of_anchors,
        "cells first, then five numbers at a time": lambda output: (
            output.flatten(2).transpose(1, 2).unflatten(2, (-1, 5)).flatten(1, 2)
        ),
    }
    wrong: dict[str, Rows] = {
        "reshape alone": _reshape_alone,
        "five groups of A": _five_groups,
        "column by column": _column_by_column,
        "anchor after anchor": _anchor_after_anchor,
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
    """Every number is told by where it stands: picture, channel, row and column."""
    batch, anchors, height, width = 2, 3, 4, 5
    output = torch.arange(batch * 5 * anchors * height * width).view(batch, 5 * anchors, height, width)
    table = rows(output)
    assert table.shape == (batch, height * width * anchors, 5)
    for y in range(height):
        for x in range(width):
            for a in range(anchors):
                expected = output[:, 5 * a : 5 * a + 5, y, x]
                assert torch.equal(table[:, (y * width + x) * anchors + a], expected), (y, x, a)


def _counting(*shape: int) -> Tensor:
    """An output in which every number is a different one, so that it tells where it stands."""
    return torch.arange(math.prod(shape)).view(shape)


def _in_place(shape: tuple[int, int, int, int], rows: Rows) -> None:
    """A right look at every number of an output whose shape does not bring everything to light."""
    output = _counting(*shape)
    assert torch.equal(rows(output), rows_of_anchors(output))


def _shape_only(rows: Rows) -> None:
    assert rows(torch.rand(2, 15, 4, 5)).shape == (2, 60, 5)  # noqa: FL002 on the CPU


def _first_row_only(rows: Rows) -> None:
    output = _counting(2, 15, 4, 5)
    assert torch.equal(rows(output)[:, 0], output[:, :5, 0, 0])


def _first_picture_and_row(rows: Rows) -> None:
    output = _counting(2, 15, 4, 5)
    assert torch.equal(rows(output)[0, 0], output[0, :5, 0, 0])


def _first_cell_only(rows: Rows) -> None:
    output = _counting(2, 15, 4, 5)
    assert torch.equal(rows(output)[:, :3], output[:, :, 0, 0].unflatten(1, (3, 5)))


def _first_picture_and_cell(rows: Rows) -> None:
    output = _counting(2, 15, 4, 5)
    assert torch.equal(rows(output)[0, :3], output[0, :, 0, 0].unflatten(0, (3, 5)))


def _first_picture_only(rows: Rows) -> None:
    output = _counting(2, 15, 4, 5)
    assert torch.equal(rows(output)[0], rows_of_anchors(output)[0])


def _logits_only(rows: Rows) -> None:
    output = _counting(2, 15, 4, 5)
    assert torch.equal(rows(output)[..., 0], rows_of_anchors(output)[..., 0])


def _channels_only(rows: Rows) -> None:
    output = torch.arange(15).view(1, 15, 1, 1).repeat(2, 1, 4, 5)
    assert torch.equal(rows(output), rows_of_anchors(output))


def _cells_only(rows: Rows) -> None:
    output = torch.arange(20).view(1, 1, 4, 5).repeat(2, 15, 1, 1)
    assert torch.equal(rows(output), rows_of_anchors(output))


def _the_sum(rows: Rows) -> None:
    output = _counting(2, 15, 4, 5)
    assert rows(output).sum() == output.sum()


def _the_sum_and_the_shape(rows: Rows) -> None:
    output = _counting(2, 15, 4, 5)
    assert rows(output).shape == (2, 60, 5)
    assert rows(output).sum() == output.sum()


def _not_the_reshape(rows: Rows) -> None:
    output = _counting(2, 15, 4, 5)
    assert not torch.equal(rows(output), _reshape_alone(output))


def _the_reshape(rows: Rows) -> None:
    output = _counting(2, 15, 4, 5)
    assert torch.equal(rows(output), _reshape_alone(output))


def _all_alike(rows: Rows) -> None:
    assert torch.equal(rows(torch.ones(2, 15, 4, 5)), torch.ones(2, 60, 5))  # noqa: FL002 on the CPU


def _returns_the_comparison(rows: Rows) -> bool:
    output = _counting(2, 15, 4, 5)
    return torch.equal(rows(output), rows_of_anchors(output))


def name_regions(logits: Tensor) -> tuple[Tensor, Tensor]:
    scores, names = logits.softmax(dim=1)[:, :-1].max(dim=1)
    return names, scores


def _background_may_win(logits: Tensor) -> tuple[Tensor, Tensor]:
    scores, names = logits.softmax(dim=1).max(dim=1)
    return names, scores


def _background_first(logits: Tensor) -> tuple[Tensor, Tensor]:
    scores, names = logits.softmax(dim=1)[:, 1:].max(dim=1)
    return names, scores


def _without_background(logits: Tensor) -> tuple[Tensor, Tensor]:
    scores, names = logits[:, :-1].softmax(dim=1).max(dim=1)
    return names, scores


def _raw_logits(logits: Tensor) -> tuple[Tensor, Tensor]:
    scores, names = logits[:, :-1].max(dim=1)
    return names, scores


def _sigmoids(logits: Tensor) -> tuple[Tensor, Tensor]:
    scores, names = logits[:, :-1].sigmoid().max(dim=1)
    return names, scores


def _scores_first(logits: Tensor) -> tuple[Tensor, Tensor]:
    scores, names = logits.softmax(dim=1)[:, :-1].max(dim=1)
    return scores, names


def _score_of_the_best_class(logits: Tensor) -> tuple[Tensor, Tensor]:
    return logits.argmax(dim=1), name_regions(logits)[1]


def _names_from_one(logits: Tensor) -> tuple[Tensor, Tensor]:
    names, scores = _background_first(logits)
    return names + 1, scores


def _down_the_columns(logits: Tensor) -> tuple[Tensor, Tensor]:
    scores, names = logits.softmax(dim=0)[:, :-1].max(dim=1)
    return names, scores


def _best_of_each_column(logits: Tensor) -> tuple[Tensor, Tensor]:
    scores, names = logits.softmax(dim=1)[:, :-1].max(dim=0)
    return names, scores


def _logarithms(logits: Tensor) -> tuple[Tensor, Tensor]:
    scores, names = logits.log_softmax(dim=1)[:, :-1].max(dim=1)
    return names, scores


def _objects_only(logits: Tensor) -> tuple[Tensor, Tensor]:
    return name_regions(logits[logits.argmax(dim=1) < logits.shape[1] - 1])


def _max_as_it_is(logits: Tensor) -> Any:
    return logits.softmax(dim=1)[:, :-1].max(-1)


def _logit_cases(random: Random) -> Sequence[Case]:
    """Regions of a class and regions of background, from 2 to 11 columns."""
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    fixed = torch.tensor([[4.0, 0.0, 1.0], [0.0, 1.0, 5.0], [1.0, 3.0, 2.0]])
    far = torch.tensor([[200.0, 1.0, 199.0], [-200.0, -201.0, -199.0]])  # their exp is infinite, or 0
    drawn = [
        torch.randn(n, c, generator=generator) * 3
        for n, c in ((random.randint(12, 40), 11), (random.randint(3, 11), 4), (1, 2))
    ]
    return [Case((logits,)) for logits in (fixed, far, *drawn)]


def _same_names(given: Any, expected: tuple[Tensor, Tensor]) -> bool:
    """Both tensors, in this order, scores within the rounding of float32."""
    if not isinstance(given, tuple | list) or len(given) != 2 or not all(isinstance(x, Tensor) for x in given):
        return False
    names, scores = given
    if names.shape != expected[0].shape or scores.shape != expected[1].shape:
        return False
    if names.is_floating_point() != expected[0].is_floating_point():
        return False  # names are positions
    pairs = zip((names, scores), expected, strict=True)
    return all(torch.allclose(mine.double(), right.double(), atol=1e-6) for mine, right in pairs)


EXERCISES = (
    Exercise(
        key="12.rows_of_anchors",
        task="The RPN's output (B, 5 * A, h, w), whose channels are five numbers an anchor, anchor after anchor, as "
        "one row for each anchor: (B, h * w * A, 5), row by row of the map and A at each cell, as the anchors stand.",
        reference=rows_of_anchors,
        cases=_output_cases,
        agree=same_tensor,
        hints=(
            "Channels are the second dimension and must become the last: what belongs to one cell stands together.",
            "A view alone changes shapes, not the order in memory: `permute` first.",
            "`output.permute(0, 2, 3, 1).reshape(len(output), -1, 5)`",
        ),
        mistakes=(
            Mistake(
                "two conventions",
                "this table comes of reading the channels as five groups of A, where they are A groups of five. "
                "Shapes fit, and every anchor learns from the others' numbers.",
                "jwyang/fpn.pytorch issue 6, 2018: one convention in the softmax, the other in the loss",
                answers=(_five_groups, _five_long_groups),
            ),
            Mistake(
                "column by column",
                "this table goes through the map column by column. The anchors come row by row.",
                "jwyang/faster-rcnn.pytorch issue 501, 2019, of an RPN whose anchors were laid the other way",
                answers=(_column_by_column,),
            ),
            Mistake(
                "anchor after anchor",
                "this table has all cells of the first anchor before those of the second. The A anchors of a cell "
                "are neighbours.",
                "jwyang/fpn.pytorch issue 6, 2018, where boxes and scores were counted in the two ways",
                answers=(_anchor_after_anchor,),
            ),
            Mistake(
                "no permute",
                "this is what a change of the shape alone gives: a row then holds five neighbours of one channel.",
                "yihong-97/Source-free-IAPC pull request 6, 2024, puts a permute in the place of a view",
                answers=(_reshape_alone,),
            ),
            Mistake(
                "a row for each cell",
                "this table has a row for each cell, with the numbers of all its anchors. A row for each anchor has "
                "five.",
                answers=(_a_row_for_each_cell,),
            ),
            Mistake(
                "the sizes of this notebook",
                "this is what a function gives in which sizes of this notebook's output are written. It has to do "
                "for any number of pictures, anchors and cells; ask `output.shape`, or leave one size to -1.",
                answers=(_three_anchors, _this_output),
            ),
        ),
    ),
    Exercise(
        key="12.check_rows",
        task="A test: it calls `rows(output)` with an output (B, 5 * A, h, w) of its own, and raises an AssertionError "
        "unless every number arrives in the row of its anchor. It passes on right programs and fails on wrong ones.",
        reference=check_rows,
        cases=_programs,
        hints=(
            "You choose the numbers of `output`. Which ones would tell you where each of them came from?",
            "`torch.arange(...)`, with more than one anchor, a map that is not square, and a look at every row.",
            "Anchor a of cell (y, x) has row `(y * w + x) * A + a`, and it holds `output[:, 5 * a : 5 * a + 5, y, x]`.",
        ),
        mistakes=(
            Mistake(
                "shapes only",
                "this is how a test ends that looks at the shape alone. The shape can be right with every number in "
                "a wrong place.",
                "tenstorrent/pytorch2.0_ttnn pull request 311, 2024, whose tests of permute compare sizes",
                answers=(_shape_only,),
            ),
            Mistake(
                "the first rows only",
                "this is how a test ends that looks at the first rows. A program that goes through the map column by "
                "column, or anchor after anchor, has the first row right.",
                "jwyang/faster-rcnn.pytorch issue 501, 2019: the orders differ from the second cell on",
                answers=(_first_row_only, _first_picture_and_row, _first_cell_only, _first_picture_and_cell),
            ),
            Mistake(
                "the first picture only",
                "this is how a test ends that looks at the rows of the first picture. A program that returns them "
                "for every picture of the batch passes.",
                answers=(_first_picture_only,),
            ),
            Mistake(
                "logits only",
                "this is how a test ends that looks at the first number of each row. A program that loses the four "
                "deltas passes.",
                answers=(_logits_only,),
            ),
            Mistake(
                "half of the place",
                "this is how a test ends whose numbers tell the channel that they come from, or the cell, and not "
                "both. A program that mixes up the other one passes. Let every number be a different one.",
                answers=(_channels_only, _cells_only),
            ),
            Mistake(
                "in any order",
                "this is how a test ends that sees that no number is lost, and not where it is: the sum is the same "
                "in any order.",
                answers=(_the_sum, _the_sum_and_the_shape),
            ),
            Mistake(
                "one wrong program",
                "this is how a test ends that refuses the wrong program of this notebook, and lets all other wrong "
                "ones pass. Say what is right, not what is wrong.",
                answers=(_not_the_reshape,),
            ),
            Mistake(
                "expects the reshape",
                "this is how a test ends that wants what `reshape` alone gives, which is the wrong order. It fails "
                "on the right programs.",
                answers=(_the_reshape,),
            ),
            Mistake(
                "one anchor",
                "this is how a test ends that has one anchor at each cell. Then five groups of one are one group of "
                "five, and a program that mixes up the two passes.",
                "jwyang/fpn.pytorch issue 6, 2018: with one anchor its two conventions are the same",
                answers=tuple(partial(_in_place, shape) for shape in ((2, 5, 4, 5), (1, 5, 4, 5), (1, 5, 4, 4))),
            ),
            Mistake(
                "one picture",
                "this is how a test ends that has one picture. A program that mixes the pictures of a batch passes.",
                answers=(partial(_in_place, (1, 15, 4, 5)),),
            ),
            Mistake(
                "a square map",
                "this is how a test ends whose map is as high as it is wide. A program that takes the height for the "
                "width passes.",
                answers=(partial(_in_place, (2, 15, 4, 4)),),
            ),
            Mistake(
                "one picture and a square map",
                "this is how a test ends that has one picture, and a map that is as high as it is wide. A program "
                "that mixes the pictures of a batch passes, and so does one that takes the height for the width.",
                answers=(partial(_in_place, (1, 15, 4, 4)),),
            ),
            Mistake(
                "all numbers alike",
                "this is how a test ends in which every place has the same number, so nobody can see which of them "
                "moved.",
                answers=(_all_alike,),
            ),
            Mistake(
                "never fails",
                "this test lets every program pass, as one does that never raises anything. A test that *returns* "
                "False has passed; write `assert`.",
                "pytest warns about tests that return something since version 7.2, 2022",
                answers=(_returns_the_comparison,),
            ),
        ),
    ),
    Exercise(
        key="12.name_regions",
        task="Two tensors (R,), names and scores, from logits (R, C + 1) whose last column is the background: the best "
        "of the C classes, and its share of the softmax over all C + 1.",
        reference=name_regions,
        cases=_logit_cases,
        agree=_same_names,
        hints=(
            "Two steps: shares of all C + 1 answers, then the best of the first C of them.",
            "The order of the two matters. What does the softmax of a region of background look like?",
            "`scores, names = logits.softmax(dim=1)[:, :-1].max(dim=1)`, and return the names first.",
        ),
        mistakes=(
            Mistake(
                "scores first",
                "this is a pair with the scores first. `max(dim=1)` gives the largest values and then their "
                "positions. The names are the positions, and they were asked for first.",
                answers=(_scores_first, _max_as_it_is),
            ),
            Mistake(
                "background is a class",
                "this is what a function gives that lets the background win. The detector then reports objects of a "
                "class C that does not exist.",
                "matterport/Mask_RCNN issue 475, 2018, asks why detections come out as BG",
                answers=(_background_may_win, _score_of_the_best_class),
            ),
            Mistake(
                "background first",
                "this is what a function gives that takes the first column for the background. Here it is the last "
                "one; both conventions are in use, and nothing raises.",
                "facebookresearch/detectron2 issue 524, 2019: it changed from 0 to the number of classes",
                answers=(_background_first, _names_from_one),
            ),
            Mistake(
                "without the background",
                "this is what a softmax gives without the column of the background. Then the scores of the classes "
                "add up to 1 in every region, and the detector is sure of something where there is nothing.",
                "lyycfairy's background pictures with scores of 0.95, amdegroot/ssd.pytorch issue 356, 2019, look so",
                answers=(_without_background,),
            ),
            Mistake(
                "no softmax",
                "these scores are not shares of the whole: a logit is any number, the logarithm of a share is not a "
                "share, and a sigmoid does not know the other answers of the region.",
                "the raw scores of chenyuntc/simple-faster-rcnn-pytorch issue 67, 2018",
                answers=(_raw_logits, _sigmoids, _logarithms),
            ),
            Mistake(
                "down the columns",
                "this is what a function gives that goes down a column, where a region is a row. Its answers are "
                "compared with each other, not with those of other regions: `dim=1`.",
                answers=(_down_the_columns, _best_of_each_column),
            ),
            Mistake(
                "regions left out",
                "this is what is left without the regions of background. They keep their row, with a low score, so "
                "the number of rows does not depend on the picture.",
                answers=(_objects_only,),
            ),
        ),
    ),
)
