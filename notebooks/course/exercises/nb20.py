"""Exercises of notebook 20: reduce a loss, pad the ground truth, judge what a detector found, and how well in all."""

from collections.abc import Sequence
from random import Random

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from course.learn.exercise import Case, Exercise, Mistake
from frcnn_lite.ops.boxes import box_iou


def batch_loss(sums: Tensor, counts: Tensor) -> Tensor:
    """The loss of the whole batch from each image's sum and count, both (B,)."""
    return sums.sum() / counts.sum().clamp(min=1)


def pad_labels(labels: Sequence[Tensor]) -> Tensor:
    """The labels of several images as one (B, M) tensor, rows filled up with -1."""
    longest = max(len(row) for row in labels)
    return torch.stack([pad(row, (0, longest - len(row)), value=-1) for row in labels])


def true_positives(boxes: Tensor, truth: Tensor) -> list[bool]:
    """For each box (n, 4), best score first: is it the first one to overlap a true box (m, 4) by 0.5 or more?"""
    iou = box_iou(boxes, truth)
    right = []
    for row in iou:
        best = row.argmax()
        right.append(bool(row[best] >= 0.5))
        if right[-1]:
            iou[:, best] = -1  # this true box is found; nobody else finds it again
    return right


def average_precision(right: Sequence[bool], objects: int) -> float:
    """COCO's AP of one class: `right` for each box, best score first over all pictures, of `objects` to find."""
    hits = np.cumsum(right)
    recall, precision = hits / objects, hits / np.arange(1, len(right) + 1)
    best = np.maximum.accumulate(precision[::-1])[::-1]  # at this recall or a larger one
    reached = np.searchsorted(recall, np.linspace(0, 1, 101))
    return float(np.append(best, 0.0)[reached].mean())


def _mean_of_means(sums: Tensor, counts: Tensor) -> Tensor:
    return (sums / counts.clamp(min=1)).mean()


def _mean_of_devices(sums: Tensor, counts: Tensor) -> Tensor:
    halves = zip(sums.chunk(2), counts.chunk(2), strict=True)
    return torch.stack([batch_loss(s, c) for s, c in halves]).mean()


def _loss_cases(random: Random) -> Sequence[Case]:
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    cases = [Case((torch.tensor([6.0, 1.0, 1.0]), torch.tensor([2.0, 1.0, 1.0]))), Case((torch.zeros(2),) * 2)]
    for _ in range(8):
        rows = random.randint(2, 40)
        counts = torch.randint(0, 9, (rows,), generator=generator).double()
        cases.append(Case((counts * torch.rand(rows, generator=generator, dtype=torch.float64), counts)))
    return cases


def _label_cases(random: Random) -> Sequence[Case]:
    lengths = [[3, 1], [1, 4, 2], [2, 0]] + [[random.randint(0, 6) for _ in range(4)] for _ in range(8)]
    rows = [
        [torch.tensor([random.randrange(10) for _ in range(n)], dtype=torch.int64) for n in some] for some in lengths
    ]
    return [Case((row,)) for row in rows]


def _box_cases(random: Random) -> Sequence[Case]:
    truth = torch.tensor([[0.0, 0.0, 10.0, 10.0], [30.0, 0.0, 40.0, 10.0]])
    fixed = [truth[:1].repeat(2, 1), truth.flip(0), truth + 4, truth[:1] + torch.tensor([[0.0, 0.0, 5.0, 0.0]])]
    cases = [Case((boxes, truth)) for boxes in fixed]
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    for _ in range(20):
        some, found = random.randint(1, 4), random.randint(0, 8)
        corners = 20 * torch.rand(some, 2, generator=generator)
        some_boxes = torch.cat([corners, corners + 10], dim=1)
        picks = torch.randint(some, (found,), generator=generator)
        moved = some_boxes[picks] + 4 * torch.rand(found, 4, generator=generator)
        cases.append(Case((moved, some_boxes)))
    return cases


def _counts_duplicates(boxes: Tensor, truth: Tensor) -> list[bool]:
    return (box_iou(boxes, truth).amax(dim=1) >= 0.5).tolist()


def _ranked_cases(random: Random) -> Sequence[Case]:
    # Of 7, 9, 11 or 13 objects no part is a whole hundredth, so that rounding decides nothing.
    cases = [Case(([True, True, False, True], 7)), Case(([False, True, False, True, True, False], 9)), Case(([], 7))]
    for _ in range(20):
        objects, found = random.choice([7, 9, 11, 13]), random.randint(0, 30)
        ranked = [random.random() < 0.5 for _ in range(found)]
        right = [hit and sum(ranked[: k + 1]) <= objects for k, hit in enumerate(ranked)]
        cases.append(Case((right, objects)))
    return cases


def _at_recalls(right: Sequence[bool], objects: int) -> float:
    hits = np.cumsum(right)
    recall, precision = hits / objects, hits / np.arange(1, len(right) + 1)
    return float(np.append(precision, 0.0)[np.searchsorted(recall, np.linspace(0, 1, 101))].mean())


def _at_hits(right: Sequence[bool], objects: int) -> float:
    precision = np.cumsum(right) / np.arange(1, len(right) + 1)
    return float(precision[np.array(right, dtype=bool)].sum() / objects)


def _sloping(right: Sequence[bool], objects: int, trapezoid: bool = False) -> float:
    hits = np.cumsum(right)
    recall = np.concatenate([[0.0], hits / objects, [1.0]])
    precision = np.concatenate([[1.0], hits / np.arange(1, len(right) + 1), [0.0]])
    best = np.maximum.accumulate(precision[::-1])[::-1]
    heights = np.interp(np.linspace(0, 1, 101), recall, best)
    return float((heights[1:] + heights[:-1]).sum() / 200 if trapezoid else heights.mean())


def _near(given: object, expected: float) -> bool:
    return isinstance(given, float | int | np.floating | Tensor) and abs(float(given) - expected) < 1e-6


def _close(given: object, expected: Tensor) -> bool:
    return isinstance(given, Tensor) and given.shape == () and torch.allclose(given.double(), expected.double())


def _equal(given: object, expected: Tensor) -> bool:
    return isinstance(given, Tensor) and torch.equal(given, expected)


EXERCISES = (
    Exercise(
        key="20.batch_loss",
        task="The loss of a whole batch from each image's sum and count; 0 where all counts are 0.",
        reference=batch_loss,
        cases=_loss_cases,
        agree=_close,
        hints=(
            "How much should one sampled box weigh? The same, whichever image it stands in.",
            "Add up all sums, add up all counts, divide once.",
            "`return sums.sum() / counts.sum().clamp(min=1)`",
        ),
        mistakes=(
            Mistake(
                "mean of the images' means",
                "you divided within each image and took the mean: a box in an image with few boxes weighs more than "
                "one in a crowded image.",
                "the same with mini-batches in the place of images: OpenNMT/OpenNMT-py issue 2293, 2023",
                answers=(_mean_of_means,),
            ),
            Mistake(
                "mean of the devices' means",
                "you divided on each device and took the mean over devices. Then the loss depends on how the batch was "
                "split.",
                "open-mmlab/mmdetection issue 2933, 2020: one mAP lost between four and eight GPUs",
                answers=(_mean_of_devices,),
            ),
        ),
    ),
    Exercise(
        key="20.pad_labels",
        task="One (B, M) int64 tensor from the labels of B images, M being the longest; padding is -1.",
        reference=pad_labels,
        cases=_label_cases,
        agree=_equal,
        hints=(
            "Rows of one tensor have one length. Which?",
            "`torch.nn.functional.pad(row, (0, missing), value=...)` appends `missing` entries.",
            "`torch.stack([pad(row, (0, longest - len(row)), value=-1) for row in labels])`",
        ),
        mistakes=(
            Mistake(
                "zeros",
                "you padded with 0, and 0 is a class: every padded row is now a digit zero without a box.",
                "zero-padded boxes became training samples in jwyang/faster-rcnn.pytorch, 2017 to 2020",
                answers=(lambda labels: pad_labels(labels).clamp(min=0),),
            ),
        ),
    ),
    Exercise(
        key="20.true_positives",
        task="For each found box, best score first: is it the first to overlap a true box by IoU 0.5 or more?",
        reference=true_positives,
        cases=_box_cases,
        hints=(
            "`box_iou(boxes, truth)` gives one row per found box, one column per true box.",
            "A true box can be found once. What happens to its column when it has been?",
            "Go through the rows; if the largest entry is 0.5 or more, it is right, and its column becomes -1.",
        ),
        mistakes=(
            Mistake(
                "duplicates count",
                "you let one true box be found twice. Then a detector gains by saying everything twice; COCO and "
                "PASCAL VOC count the second as wrong.",
                "M. Everingham et al., The PASCAL VOC Challenge, 2010, section 4.2",
                answers=(_counts_duplicates,),
            ),
        ),
    ),
    Exercise(
        key="20.average_precision",
        task="COCO's AP of one class from its ranked boxes, right or wrong, and the number of objects.",
        reference=average_precision,
        cases=_ranked_cases,
        agree=_near,
        hints=(
            "After each box: how many are right so far, of all boxes so far, and of all objects?",
            "`np.maximum.accumulate` runs from the left; the best at a recall *or a larger one* runs from the right.",
            "`np.searchsorted(recall, np.linspace(0, 1, 101))` is the first box at each recall, or `len(recall)`.",
        ),
        mistakes=(
            Mistake(
                "no running maximum",
                "you took the precision as it is ranked. COCO takes the best at this recall or a larger one, from the "
                "right end of the list; else a wrong box in the middle costs at recalls where nobody would stop.",
                "scikit-learn issue 30147, 2024: its average_precision_score, which takes no maximum, for a detector",
                answers=(_at_recalls, _at_hits),
            ),
            Mistake(
                "a sloping line",
                "you drew a line from point to point, and on to a recall of 1. Nothing was measured there: precision "
                "is that of the first box to reach a recall, and 0 beyond the last.",
                "ultralytics/yolov5 pull request 7714, 2022; roboflow/supervision pull request 1500, 2024",
                answers=(_sloping, lambda right, objects: _sloping(right, objects, trapezoid=True)),
            ),
        ),
    ),
)
