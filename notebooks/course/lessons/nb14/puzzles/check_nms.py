"""A test: it calls `program(boxes, scores, threshold)`, which returns a mask of the boxes that are kept, and raises an
AssertionError on a wrong suppression. It passes on right ones.
"""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

import torch
from torch import Tensor
from torchvision import ops as vision

from course.kit.learn.exercise import Case, Program, Trial
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb14.cases import nms_by_hand
from frcnn_lite import ops
from frcnn_lite.ops import box_iou
from frcnn_lite.ops.nms import round_down

hints = (
    "Each wrong program is right on many inputs. On which three boxes do a loop and a single round differ?",
    "Three boxes in a row, not sorted by score; the same boxes divided by 128; and two of them alone.",
    "`row = torch.tensor([[3.0, 0, 13, 10], [0, 0, 10, 10], [6, 0, 16, 10]])` with scores 0.8, 0.9, 0.7 "
    "and threshold 0.5 leaves [False, True, True].",
)


def mask_of(kept: Sequence[int], boxes: Tensor) -> Tensor:
    mask = torch.zeros(len(boxes), dtype=torch.bool)  # noqa: FL002 exercises are on the CPU
    mask[list(kept)] = True
    return mask


def _in_order(order: Tensor, boxes: Tensor, threshold: float) -> Tensor:
    """Greedy suppression that takes the boxes in some order, and decides at the threshold as torchvision's does."""
    exact = round_down(threshold, boxes.dtype)
    return mask_of(order[nms_by_hand(boxes[order], exact)].tolist(), boxes)


def _best_first(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    return _in_order(scores.argsort(descending=True, stable=True), boxes, threshold)


def _all_at_once(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    suppresses = (box_iou(boxes, boxes) > threshold) & (scores[:, None] > scores)
    return ~suppresses.any(dim=0)


def _by_rounds(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    return ops.nms_mask(box_iou(boxes, boxes)[None], scores[None], threshold)[0]


def _inclusive(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    return _best_first(boxes + torch.tensor([0.0, 0.0, 1.0, 1.0]), scores, threshold)  # noqa: FL002 on the CPU


def _own_threshold(fixed: float, boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    return _best_first(boxes, scores, fixed)


def cases(random: Random) -> Sequence[Case]:
    """Three right suppressions and six wrong ones."""
    programs: dict[str, Callable[[Tensor, Tensor, float], Tensor]] = {
        "torchvision's": lambda boxes, scores, threshold: mask_of(vision.nms(boxes, scores, threshold).tolist(), boxes),
        "the loop": _best_first,
        "the rounds": _by_rounds,
        "one round": _all_at_once,
        "rows as they stand": lambda boxes, scores, threshold: mask_of(nms_by_hand(boxes, threshold), boxes),
        "worst first": lambda boxes, scores, threshold: _in_order(scores.argsort(stable=True), boxes, threshold),
        "the extra pixel": _inclusive,
    }
    for fixed in (random.uniform(0.05, 0.2), random.uniform(0.6, 0.95)):
        programs[f"its own threshold, {fixed:.3f}"] = partial(_own_threshold, fixed)
    return [Trial((Program(name, compute),)) for name, compute in programs.items()]


def check_nms(program: Callable[[Tensor, Tensor, float], Tensor]) -> None:
    row = torch.tensor([[3.0, 0, 13, 10], [0, 0, 10, 10], [6, 0, 16, 10]])  # noqa: FL002 on the CPU
    scores = torch.tensor([0.8, 0.9, 0.7])  # noqa: FL002 on the CPU
    for boxes in (row, row / 128):
        assert program(boxes, scores, 0.5).tolist() == [False, True, True]
        assert program(boxes[:2], scores[:2], 0.5).tolist() == [False, True]


def _row(*order: int) -> Tensor:
    """Boxes that overlap their neighbours by more than half; box 3 is apart."""
    boxes = [[0.0, 0, 10, 10], [3, 0, 13, 10], [6, 0, 16, 10], [60, 60, 80, 80]]
    return torch.tensor([boxes[k] for k in order])  # noqa: FL002 exercises are on the CPU


def _scores(*scores: float) -> Tensor:
    return torch.tensor(scores)  # noqa: FL002 exercises are on the CPU


@wrong
def no_chain(program: Callable[[Tensor, Tensor, float], Tensor]) -> None:
    """this is how a test ends in which no removed box overlaps a third one. A suppression that makes only one round, as
    Fast NMS does, passes it.

    Source: meant so, as an approximation, in Fast NMS: Bolya et al., YOLACT, 2019
    """
    for boxes in (_row(1, 0, 3), _row(1, 0, 3) / 128):
        assert program(boxes, _scores(0.8, 0.9, 0.7), 0.5).tolist() == [False, True, True]


@wrong
def sorted_boxes_only(program: Callable[[Tensor, Tensor, float], Tensor]) -> None:
    """a program that never looks at the scores passes this test. That happens if the boxes are given best first, and
    also if their order makes no difference to what is kept. Let a good box come after a worse one that it removes.

    Source: jwyang/faster-rcnn.pytorch issue 320, 2018: boxes reach the kernel without being sorted
    """
    for boxes in (_row(0, 1, 2), _row(0, 1, 2) / 128):
        assert program(boxes, _scores(0.9, 0.8, 0.7), 0.5).tolist() == [True, False, True]
        assert program(boxes[:2], _scores(0.9, 0.8), 0.5).tolist() == [True, False]


@also(sorted_boxes_only)
def sorted_in_pixels(program: Callable[[Tensor, Tensor, float], Tensor]) -> None:
    assert program(_row(0, 1, 2), _scores(0.9, 0.8, 0.7), 0.5).tolist() == [True, False, True]


@wrong
def a_chain_read_backwards(program: Callable[[Tensor, Tensor, float], Tensor]) -> None:
    """a program that takes the worst box first passes this test. It keeps as many boxes as a right one, and of a chain
    of three even the same ones. Two of the three boxes alone tell: which one stays?
    """
    for boxes in (_row(1, 2, 0), _row(1, 2, 0) / 128):
        assert program(boxes, _scores(0.8, 0.7, 0.9), 0.5).tolist() == [False, True, True]


@also(a_chain_read_backwards)
def chain_in_pixels(program: Callable[[Tensor, Tensor, float], Tensor]) -> None:
    assert program(_row(1, 2, 0), _scores(0.8, 0.7, 0.9), 0.5).tolist() == [False, True, True]


@also(a_chain_read_backwards)
def counts(program: Callable[[Tensor, Tensor, float], Tensor]) -> None:
    for boxes in (_row(1, 0, 2), _row(1, 0, 2) / 128):
        assert program(boxes, _scores(0.8, 0.9, 0.7), 0.5).sum() == 2
        assert program(boxes[:2], _scores(0.8, 0.9), 0.5).sum() == 1


@wrong
def too_few(program: Callable[[Tensor, Tensor, float], Tensor]) -> None:
    """this is how a test ends that only sees whether boxes that overlap are left. A program that removes too many
    passes.
    """
    boxes = _row(1, 0, 2)
    kept = boxes[program(boxes, _scores(0.8, 0.9, 0.7), 0.5)]
    assert (box_iou(kept, kept).fill_diagonal_(0) <= 0.5).all()


@wrong
def always_fails(program: Callable[[Tensor, Tensor, float], Tensor]) -> None:
    """this test fails on every program, also on the right ones; the error below says why. (A program returns a mask,
    true for each box that is kept, and not the numbers of rows.)
    """
    assert program(_row(1, 0, 2), _scores(0.8, 0.9, 0.7), 0.5).tolist() == [1, 2]


@wrong
def pixels_only(program: Callable[[Tensor, Tensor, float], Tensor]) -> None:
    """this is how a test ends whose boxes are many pixels large. A program that adds 1 to widths and heights is nearly
    right there, and useless on boxes between 0 and 1.

    Source: shimat/opencvsharp pull request 1400, 2022
    """
    assert program(_row(1, 0, 2), _scores(0.8, 0.9, 0.7), 0.5).tolist() == [False, True, True]
    assert program(_row(1, 0), _scores(0.8, 0.9), 0.5).tolist() == [False, True]


@wrong
def never_fails(program: Callable[[Tensor, Tensor, float], Tensor]) -> bool:
    """this test lets every program pass. Either it never raises anything (a test that *returns* False has passed; write
    `assert`), or its boxes do not overlap, so every program keeps all of them.

    Source: pytest warns about tests that return something since version 7.2, 2022
    """
    return bool(program(_row(1, 0, 2), _scores(0.8, 0.9, 0.7), 0.5).tolist() == [False, True, True])


@also(never_fails)
def boxes_apart(program: Callable[[Tensor, Tensor, float], Tensor]) -> None:
    assert program(_row(0, 3), _scores(0.8, 0.9), 0.5).tolist() == [True, True]
