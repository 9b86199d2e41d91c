"""A test: it calls `encode(boxes, anchors)` with boxes and anchors (N, 4) of its own, and raises an AssertionError
unless `ops.decode_boxes(deltas, anchors, torch.ones(4))` makes the boxes again.
"""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

import torch
from torch import Tensor

from course.kit.learn.exercise import Case, Program, Trial
from course.kit.learn.puzzle import also, wrong
from frcnn_lite import ops

hints = (
    "There and back: `ops.decode_boxes` of the deltas and the anchors must be the boxes.",
    "Which boxes and anchors show the difference? Not equal ones, not squares, not shifted alike in x and y.",
    "`torch.testing.assert_close(ops.decode_boxes(encode(boxes, anchors), anchors, torch.ones(4)), boxes)`",
)


Encode = Callable[[Tensor, Tensor], Tensor]


def encode(boxes: Tensor, anchors: Tensor, extra: float = 0) -> Tensor:
    size, own = boxes[:, 2:] - boxes[:, :2] + extra, anchors[:, 2:] - anchors[:, :2] + extra
    middle, own_middle = boxes[:, :2] + size / 2, anchors[:, :2] + own / 2
    return torch.cat([(middle - own_middle) / own, torch.log(size / own)], dim=1)


def _by_edges(boxes: Tensor, anchors: Tensor) -> Tensor:
    """The same, from the sums of the edges."""
    own, size = anchors[:, 2:] - anchors[:, :2], boxes[:, 2:] - boxes[:, :2]
    shift = (boxes[:, :2] + boxes[:, 2:] - anchors[:, :2] - anchors[:, 2:]) / (2 * own)
    return torch.cat([shift, size.log() - own.log()], dim=1)


def _by_the_box(boxes: Tensor, anchors: Tensor) -> Tensor:
    deltas, size, own = encode(boxes, anchors), boxes[:, 2:] - boxes[:, :2], anchors[:, 2:] - anchors[:, :2]
    return torch.cat([deltas[:, :2] * own / size, deltas[:, 2:]], dim=1)


def _by_corners(boxes: Tensor, anchors: Tensor) -> Tensor:
    shift = (boxes[:, :2] - anchors[:, :2]) / (anchors[:, 2:] - anchors[:, :2])
    return torch.cat([shift, encode(boxes, anchors)[:, 2:]], dim=1)


def _without_logarithm(boxes: Tensor, anchors: Tensor) -> Tensor:
    deltas = encode(boxes, anchors)
    return torch.cat([deltas[:, :2], deltas[:, 2:].exp()], dim=1)


def _times(factor: int, boxes: Tensor, anchors: Tensor) -> Tensor:
    return encode(boxes, anchors) * factor


def cases(random: Random) -> Sequence[Case]:
    """Two right programs and eight wrong ones."""
    right: dict[str, Encode] = {"by middles": encode, "by edges": _by_edges}
    wrong: dict[str, Encode] = {
        "with the + 1": lambda boxes, anchors: encode(boxes, anchors, extra=1),
        "y first": lambda boxes, anchors: encode(boxes, anchors)[:, [1, 0, 3, 2]],
        "the ratio upside down": lambda boxes, anchors: encode(boxes, anchors) * torch.tensor([1.0, 1, -1, -1]),
        "in sizes of the box": _by_the_box,
        "from corner to corner": _by_corners,
        "without the logarithm": _without_logarithm,
    }
    for factor in random.sample(range(2, 40), 2):
        wrong[f"times {factor}"] = partial(_times, factor)
    return [Trial((Program(f"encode: {name}", way),)) for name, way in {**right, **wrong}.items()]


def check_encode(encode: Encode) -> None:
    """There and back, for boxes that are not squares and lie beside their anchors."""
    anchors = torch.tensor([[10.0, 10, 30, 50], [0, 20, 8, 28]])
    boxes = torch.tensor([[14.0, 20, 44, 50], [3, 16, 9, 36]])
    back = ops.decode_boxes(encode(boxes, anchors), anchors, torch.ones(4))  # noqa: FL002 on the CPU
    torch.testing.assert_close(back, boxes)


def _there_and_back(encode: Encode, boxes: list[float], anchors: list[float]) -> tuple[Tensor, Tensor]:
    given, own = torch.tensor([boxes]), torch.tensor([anchors])
    return ops.decode_boxes(encode(given, own), own, torch.ones(4)), given  # noqa: FL002 on the CPU


@wrong
def a_box_on_its_anchor(encode: Encode) -> None:
    """this is how a test ends whose boxes are their anchors. All deltas are then 0, with the + 1 and without, in any
    order, so nearly every wrong program passes.

    Source: the formulas of fizyr/keras-retinanet issue 171, 2017, agree there
    """
    torch.testing.assert_close(*_there_and_back(encode, [10.0, 10, 30, 50], [10.0, 10, 30, 50]))


@wrong
def squares_on_the_diagonal(encode: Encode) -> None:
    """this is how a test ends with squares that are shifted as far in x as in y. Then x and y can be swapped without a
    difference.

    Source: y first: pytorch/vision issue 1856, 2020; chenyuntc/simple-faster-rcnn-pytorch issue 39, 2018
    """
    torch.testing.assert_close(*_there_and_back(encode, [14.0, 14, 44, 44], [10.0, 10, 30, 30]))


@wrong
def half_of_the_deltas(encode: Encode) -> None:
    """this is how a test ends with a box that is as large as its anchor, or one that has the same middle. Then two of
    the four deltas are 0, and what is wrong with them does not show.
    """
    torch.testing.assert_close(*_there_and_back(encode, [16.0, 14, 36, 54], [10.0, 10, 30, 50]))


@also(half_of_the_deltas)
def same_size_and_ratio(encode: Encode) -> None:
    torch.testing.assert_close(*_there_and_back(encode, [15.0, 20, 35, 60], [10.0, 10, 30, 50]))


@also(half_of_the_deltas)
def same_middle(encode: Encode) -> None:
    torch.testing.assert_close(*_there_and_back(encode, [5.0, 20, 35, 40], [10.0, 10, 30, 50]))


@wrong
def always_fails(encode: Encode) -> None:
    """this test fails on every program, also on the right ones; the error below says why. (`encode` takes the boxes
    first and the anchors second.)
    """
    boxes, anchors = torch.tensor([[14.0, 20, 44, 50]]), torch.tensor([[10.0, 10, 30, 50]])
    back = ops.decode_boxes(encode(anchors, boxes), anchors, torch.ones(4))  # noqa: FL002 on the CPU
    torch.testing.assert_close(back, boxes)


def _is_bit_for_bit(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    """A right program fails by an assertion, and so do all wrong ones."""
    ended = list(zip(cases, given, strict=True))
    right = [end for case, end in ended if case.args[0].words in ("encode: by middles", "encode: by edges")]
    failed = any(not end.passed and end.why.startswith("AssertionError") for end in right)
    return failed and any(end.passed for end in right) and sum(end.passed for _, end in ended) == 1


@wrong(recognise=_is_bit_for_bit)
def bit_for_bit(encode: Encode) -> None:
    """this is how a test ends that compares bit for bit. A right program may round differently: use
    `torch.testing.assert_close`.
    """
    anchors, boxes = torch.tensor([[4.0, 39, 32, 69]]), torch.tensor([[3.0, 19, 45, 57]])
    back = ops.decode_boxes(encode(boxes, anchors), anchors, torch.ones(4))  # noqa: FL002 on the CPU
    assert torch.equal(back, boxes)


@wrong
def a_pixel_is_near_enough(encode: Encode) -> None:
    """this is how a test ends that allows a pixel. With the + 1 an edge is off by less than that, unless it has to move
    by more than the size of its anchor, so the wrong program passes.
    """
    back, boxes = _there_and_back(encode, [14.0, 20, 44, 50], [10.0, 10, 30, 50])
    assert (back - boxes).abs().max() < 1


@wrong
def never_fails(encode: Encode) -> bool:
    """this test lets every program pass. A test that *returns* False has passed, and so has one that looks at shapes
    alone; compare the boxes, and write `assert`.

    Source: pytest warns about tests that return something since version 7.2, 2022
    """
    return torch.equal(*_there_and_back(encode, [14.0, 20, 44, 50], [10.0, 10, 30, 50]))
