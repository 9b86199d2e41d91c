"""Exercises of notebook 14: deltas into boxes, greedy suppression, and suppression within classes."""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from course.learn.exercise import Case, Exercise, Mistake
from frcnn_lite.ops import box_iou
from frcnn_lite.ops.boxes import MAX_LOG_SCALE


def decode(deltas: Tensor, anchors: Tensor) -> Tensor:
    center, size = (anchors[:, :2] + anchors[:, 2:]) / 2, anchors[:, 2:] - anchors[:, :2]
    center = center + deltas[:, :2] * size
    half = size * deltas[:, 2:].clamp(max=MAX_LOG_SCALE).exp() / 2
    return torch.cat([center - half, center + half], dim=1)


def _decode_inclusive(deltas: Tensor, anchors: Tensor) -> Tensor:
    size = anchors[:, 2:] - anchors[:, :2] + 1
    center = anchors[:, :2] + size / 2 + deltas[:, :2] * size
    half = size * deltas[:, 2:].clamp(max=MAX_LOG_SCALE).exp() / 2
    return torch.cat([center - half, center + half], dim=1)


def _decode_unbounded(deltas: Tensor, anchors: Tensor) -> Tensor:
    center, size = (anchors[:, :2] + anchors[:, 2:]) / 2, anchors[:, 2:] - anchors[:, :2]
    center, half = center + deltas[:, :2] * size, size * deltas[:, 2:].exp() / 2
    return torch.cat([center - half, center + half], dim=1)


def nms(boxes: Tensor, threshold: float) -> list[int]:
    overlaps, kept = box_iou(boxes, boxes) > threshold, list[int]()
    for row in range(len(boxes)):
        if not any(overlaps[better, row] for better in kept):
            kept.append(row)
    return kept


def _removed_boxes_remove(boxes: Tensor, threshold: float) -> list[int]:
    overlaps = (box_iou(boxes, boxes) > threshold).triu(diagonal=1)
    return (~overlaps.any(dim=0)).nonzero()[:, 0].tolist()


def _nms_inclusive(boxes: Tensor, threshold: float) -> list[int]:
    return nms(boxes + torch.tensor([0.0, 0.0, 1.0, 1.0]), threshold)  # noqa: FL002 exercises are on the CPU


def class_nms(boxes: Tensor, classes: Tensor, threshold: float) -> list[int]:
    overlaps, kept = box_iou(boxes.float(), boxes.float()) > threshold, list[int]()
    for row in range(len(boxes)):
        if not any(overlaps[better, row] and classes[better] == classes[row] for better in kept):
            kept.append(row)
    return kept


def _one_for_all(boxes: Tensor, classes: Tensor, threshold: float) -> list[int]:
    return nms(boxes.float(), threshold)


def _shifted_in_half_precision(boxes: Tensor, classes: Tensor, threshold: float) -> list[int]:
    shifted = boxes + (classes * (boxes.max() + 1)).to(boxes.dtype)[:, None]
    return nms(shifted.float(), threshold)


def _clusters(generator: torch.Generator, count: int, scale: float = 100.0) -> Tensor:
    """Boxes around a few places, so that they overlap in chains."""
    places = torch.rand(3, 2, generator=generator)[torch.randint(3, (count,), generator=generator)]
    corner = places * 0.6 + torch.rand(count, 2, generator=generator) * 0.2
    return torch.cat([corner, corner + 0.15 + torch.rand(count, 2, generator=generator) * 0.1], dim=1) * scale


def _generator(random: Random) -> torch.Generator:
    return torch.Generator().manual_seed(random.randrange(2**32))


def _decode_cases(random: Random) -> Sequence[Case]:
    generator = _generator(random)
    wild = torch.tensor([[0.1, -0.2, 100.0, 0.0], [0.0, 0.0, -3.0, 125.8]])
    anchors = torch.tensor([[0.0, 0.0, 16.0, 24.0], [8.0, 8.0, 40.0, 72.0]])
    counts = random.sample(range(1, 30), 3)
    drawn = [(torch.randn(n, 4, generator=generator) * 0.3, _clusters(generator, n)) for n in counts]
    return [Case((wild, anchors)), *(Case(pair) for pair in drawn)]


def _nms_cases(random: Random) -> Sequence[Case]:
    generator = _generator(random)
    chain = torch.tensor([[0.0, 0.0, 10.0, 10.0], [3.0, 0.0, 13.0, 10.0], [6.0, 0.0, 16.0, 10.0]])
    drawn = [Case((_clusters(generator, n), 0.4)) for n in random.sample(range(12, 40), 5)]
    return [Case((chain, 0.5)), Case((chain / 100, 0.5)), *drawn]


def _class_cases(random: Random) -> Sequence[Case]:
    generator = _generator(random)
    pair = torch.tensor([[3400.0, 3400.0, 3440.0, 3440.0], [3402.0, 3402.0, 3442.0, 3442.0]]).half()
    fixed = [Case((pair, torch.tensor([17, 17]), 0.5)), Case((pair, torch.tensor([3, 17]), 0.5))]
    for n in random.sample(range(12, 30), 4):
        classes = torch.randint(18, (n,), generator=generator)
        fixed.append(Case((_clusters(generator, n, 3500.0).half(), classes // 6 * 8, 0.4)))
    return fixed


def _close(given: object, expected: Tensor) -> bool:
    if not isinstance(given, Tensor) or given.shape != expected.shape:
        return False
    return torch.allclose(given, expected, rtol=1e-4, atol=1e-4, equal_nan=True)


EXERCISES = (
    Exercise(
        key="14.decode",
        task="Boxes (N, 4) that deltas (N, 4) make of anchors (N, 4); logarithms of sizes end at log(1000 / 16).",
        reference=decode,
        cases=_decode_cases,
        agree=_close,
        hints=(
            "The inverse of 13.encode: shifts are in sizes of the anchor, and exp undoes log.",
            "Bound the logarithm before exp, not the box after it.",
            "`half = size * deltas[:, 2:].clamp(max=math.log(1000 / 16)).exp() / 2`, around the shifted middle.",
        ),
        mistakes=(
            Mistake(
                "counts pixels",
                "you added 1 to the sizes of the anchors. Real-valued corners have no last pixel, and whoever encodes "
                "without the 1 gets boxes that are moved by a part of a pixel.",
                "rbgirshick/py-faster-rcnn issue 328, 2016",
                answers=(_decode_inclusive,),
            ),
            Mistake(
                "exp without a bound",
                "a network in its first steps says anything, 125 for instance, and exp(125) is infinite in float32. "
                "Infinity minus infinity is NaN in the next IoU, and NaN compares as false with every threshold.",
                "rbgirshick/py-faster-rcnn issue 65, 2016: a delta of 125.76, and a core dump",
                answers=(_decode_unbounded,),
            ),
        ),
    ),
    Exercise(
        key="14.nms",
        task="Rows that greedy suppression keeps of `boxes` (R, 4), best first, as a list of integers.",
        reference=nms,
        cases=_nms_cases,
        hints=(
            "`frcnn_lite.ops.box_iou(boxes, boxes)` has all overlaps at once.",
            "Walk down the rows. What may remove row 5: all rows above it, or only some?",
            "Row by row: keep it, unless a row that was *kept* overlaps it by more than the threshold.",
        ),
        mistakes=(
            Mistake(
                "removed boxes remove others",
                "you let a box be removed by one that is itself removed. A overlaps B, B overlaps C, A and C are "
                "apart: B goes, and C has to stay, since nothing is left that says the same.",
                "meant so, as an approximation, in Fast NMS: Bolya et al., YOLACT, 2019",
                answers=(_removed_boxes_remove,),
            ),
            Mistake(
                "counts pixels",
                "you added 1 to widths and heights. On boxes in pixels it shifts the threshold a little; on boxes "
                "between 0 and 1 nearly all overlap, and one survives.",
                "shimat/opencvsharp pull request 1400, 2022",
                answers=(_nms_inclusive,),
            ),
        ),
    ),
    Exercise(
        key="14.class_nms",
        task="Rows kept of `boxes` (R, 4) float16, best first, if only boxes of one class may remove each other.",
        reference=class_nms,
        cases=_class_cases,
        hints=(
            "You could move each class to a place of its own. How far away, and does float16 still know where that is?",
            "Above 2048 the numbers of float16 are 2 apart, and 65504 is the last one.",
            "No shift at all: compare the classes, and compute IoU in float32.",
        ),
        mistakes=(
            Mistake(
                "one for all classes",
                "boxes of different classes removed each other. Two objects of two kinds may overlap as much as they "
                "like: a rider and the horse.",
                "fizyr/keras-retinanet pull request 311, 2018, made it per class",
                answers=(_one_for_all,),
            ),
            Mistake(
                "shifts in half precision",
                "you moved each class by an offset, in float16. Its numbers end at 65504, and lie far apart before. "
                "Boxes of high classes lose their corners, and their copies survive.",
                "MultimediaTechLab/YOLO pull request 234, 2026; pytorch/vision issue 3371, 2021",
                answers=(_shifted_in_half_precision,),
            ),
        ),
    ),
)
