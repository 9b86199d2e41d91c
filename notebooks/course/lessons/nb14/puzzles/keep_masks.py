"""Masks (B, R) of the boxes that suppression keeps, of suppresses (B, R, R) bool: box i may remove box j."""

from collections.abc import Sequence
from functools import partial
from random import Random

import torch
from torch import Tensor

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb14.cases import clusters, generator_of
from frcnn_lite.ops import box_iou

hints = (
    "One round for a batch is the line of one picture with one dimension more. Which dimension is box i?",
    "Start with all boxes kept. Compute the next mask from the last one, until two of them are equal.",
    "`after = ~(suppresses & keep[:, :, None]).any(dim=1)`, and stop when `torch.equal(after, keep)`.",
)


def keep_masks(suppresses: Tensor) -> Tensor:
    keep = torch.ones_like(suppresses[:, 0])
    while True:
        after = ~(suppresses & keep[:, :, None]).any(dim=1)
        if torch.equal(after, keep):
            return keep
        keep = after


def _rounds(count: int, suppresses: Tensor) -> Tensor:
    keep = torch.ones_like(suppresses[:, 0])
    for _ in range(count):
        keep = ~(suppresses & keep[:, :, None]).any(dim=1)
    return keep


def cases(random: Random) -> Sequence[Case]:
    """Batches whose pictures need different numbers of rounds; row i of a picture scores above row i + 1."""
    generator, cases = generator_of(random), []
    line = torch.eye(200, dtype=torch.bool).roll(1, dims=1).triu(diagonal=1)  # noqa: FL002 on the CPU
    cases.append(Case((torch.stack([torch.zeros_like(line), line]),)))
    for count in random.sample(range(8, 30), 4):
        boxes = torch.stack([clusters(generator, count) for _ in range(3)])
        cases.append(Case(((box_iou(boxes, boxes) > 0.4).triu(diagonal=1),)))
    return cases


def _same_mask(given: object, expected: Tensor) -> bool:
    return isinstance(given, Tensor) and given.shape == expected.shape and torch.equal(given.bool(), expected)


agree = _same_mask


@wrong
def one_round(suppresses: Tensor) -> Tensor:
    """this is the result of the first round, or of a mask that may only shrink, which comes to the same. A box that was
    removed by a box that is itself removed has to be given back.

    Source: meant so, as an approximation, in Fast NMS: Bolya et al., YOLACT, 2019
    """
    return ~suppresses.any(dim=1)


@wrong
def a_fixed_number_of_rounds(suppresses: Tensor) -> Tensor:
    """this is the result of a fixed number of rounds. How many are needed depends on the longest chain of the batch; go
    on until nothing changes.
    """
    return _rounds(2, suppresses)


for count in (*range(3, 11), 20, 50, 100):
    also(a_fixed_number_of_rounds)(partial(_rounds, count))


@wrong
def one_picture_is_done(suppresses: Tensor) -> Tensor:
    """this is what comes out when the rounds end as soon as nothing changes in one picture. The others may still need
    more rounds.
    """
    keep = torch.ones_like(suppresses[:, 0])
    while True:
        after = ~(suppresses & keep[:, :, None]).any(dim=1)
        if (after == keep).all(dim=1).any():
            return after
        keep = after


@also(one_picture_is_done)
def until_the_first_is_done(suppresses: Tensor) -> Tensor:
    keep = torch.ones_like(suppresses[:, 0])
    while True:
        after = ~(suppresses & keep[:, :, None]).any(dim=1)
        if torch.equal(after[0], keep[0]):
            return after
        keep = after


@wrong
def i_and_j_exchanged(suppresses: Tensor) -> Tensor:
    """here the worse box removes the better one. Row i of `suppresses` says whom box i may remove."""
    return keep_masks(suppresses.transpose(1, 2))
