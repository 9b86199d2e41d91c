"""Rows that greedy suppression keeps of `boxes` (R, 4), best first, as a list of integers."""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb14.cases import clusters, generator_of
from frcnn_lite.ops import box_iou

hints = (
    "`frcnn_lite.ops.box_iou(boxes, boxes)` has all overlaps at once.",
    "Walk down the rows. What may remove row 5: all rows above it, or only some?",
    "Row by row: keep it, unless a row that was *kept* overlaps it by more than the threshold.",
)


def nms_by_hand(boxes: Tensor, threshold: float) -> list[int]:
    overlaps, kept = box_iou(boxes, boxes) > threshold, list[int]()
    for row in range(len(boxes)):
        if not any(overlaps[better, row] for better in kept):
            kept.append(row)
    return kept


def cases(random: Random) -> Sequence[Case]:
    generator = generator_of(random)
    chain = torch.tensor([[0.0, 0.0, 10.0, 10.0], [3.0, 0.0, 13.0, 10.0], [6.0, 0.0, 16.0, 10.0]])
    drawn = [Case((clusters(generator, n), 0.4)) for n in random.sample(range(12, 40), 5)]
    half = torch.tensor([[0.0, 0.0, 10.0, 10.0], [0.0, 0.0, 10.0, 5.0], [30.0, 0.0, 40.0, 10.0]])  # IoU 0.5 exactly
    long = torch.stack([chain[0] + torch.tensor([3.0 * k, 0.0, 3.0 * k, 0.0]) for k in range(40)])  # every second stays
    return [Case((boxes, 0.5)) for boxes in (chain, chain / 100, half, long)] + drawn


@wrong
def removed_boxes_remove_others(boxes: Tensor, threshold: float) -> list[int]:
    """here a box is removed by one that is itself removed. A overlaps B, B overlaps C, A and C are apart: B goes, and C
    has to stay, since nothing is left that says the same.

    Source: meant so, as an approximation, in Fast NMS: Bolya et al., YOLACT, 2019
    """
    overlaps = (box_iou(boxes, boxes) > threshold).triu(diagonal=1)
    return (~overlaps.any(dim=0)).nonzero()[:, 0].tolist()


@wrong
def counts_pixels(boxes: Tensor, threshold: float) -> list[int]:
    """this is what comes out when 1 is added to widths and heights. On boxes in pixels it shifts the threshold a
    little; on boxes between 0 and 1 nearly all overlap, and one survives.

    Source: shimat/opencvsharp pull request 1400, 2022
    """
    return nms_by_hand(boxes + torch.tensor([0.0, 0.0, 1.0, 1.0]), threshold)  # noqa: FL002 exercises are on the CPU


@wrong
def on_the_threshold(boxes: Tensor, threshold: float) -> list[int]:
    """here a box is removed that overlaps a kept one by exactly the threshold. It goes only if it overlaps by
    *more*.
    """
    overlaps, kept = box_iou(boxes, boxes) >= threshold, list[int]()
    for row in range(len(boxes)):
        if not any(overlaps[better, row] for better in kept):
            kept.append(row)
    return kept


@wrong
def itself(boxes: Tensor, threshold: float) -> list[int]:
    """here a box removes itself: its overlap with itself is 1. Compare it with the boxes above it."""
    return (~(box_iou(boxes, boxes) > threshold).any(dim=0)).nonzero()[:, 0].tolist()


@wrong
def one_box_alone(boxes: Tensor, threshold: float) -> list[int]:
    """this is what comes out when each box is compared with one other only, the row above it or the box that was kept
    last. Every box that was kept may remove it.
    """
    overlaps, kept = box_iou(boxes, boxes) > threshold, [0]
    for row in range(1, len(boxes)):
        if not overlaps[kept[-1], row]:
            kept.append(row)
    return kept


@also(one_box_alone)
def row_above(boxes: Tensor, threshold: float) -> list[int]:
    overlaps = box_iou(boxes, boxes) > threshold
    return [row for row in range(len(boxes)) if row == 0 or not overlaps[row - 1, row]]


@wrong
def a_mask(boxes: Tensor, threshold: float) -> list[bool]:
    """this is a mask. The numbers of the rows that stay were asked for."""
    kept = nms_by_hand(boxes, threshold)
    return [row in kept for row in range(len(boxes))]
