"""Exercises of notebook 16: reduce a loss, pad the ground truth, and judge what a detector found."""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor
from torch.nn.functional import pad

from frcnn_lite.learn.exercise import Case, Exercise, Mistake
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


def _close(given: object, expected: Tensor) -> bool:
    return isinstance(given, Tensor) and given.shape == () and torch.allclose(given.double(), expected.double())


def _equal(given: object, expected: Tensor) -> bool:
    return isinstance(given, Tensor) and torch.equal(given, expected)


EXERCISES = (
    Exercise(
        key="16.batch_loss",
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
        key="16.pad_labels",
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
        key="16.true_positives",
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
)
