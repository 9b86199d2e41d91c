"""Exercises of notebook 13: deltas, labels of anchors, don't-care areas, and the layout of a label map."""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from course.learn.exercise import Case, Exercise, Mistake
from frcnn_lite.ops import box_iou


def encode(boxes: Tensor, anchors: Tensor) -> Tensor:
    center, size = (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]
    anchor_center, anchor_size = (anchors[:, :2] + anchors[:, 2:]) / 2, anchors[:, 2:] - anchors[:, :2]
    return torch.cat([(center - anchor_center) / anchor_size, torch.log(size / anchor_size)], dim=1)


def _encode_inclusive(boxes: Tensor, anchors: Tensor) -> Tensor:
    size, anchor_size = boxes[:, 2:] - boxes[:, :2] + 1, anchors[:, 2:] - anchors[:, :2] + 1
    center, anchor_center = boxes[:, :2] + size / 2, anchors[:, :2] + anchor_size / 2
    return torch.cat([(center - anchor_center) / anchor_size, torch.log(size / anchor_size)], dim=1)


def _encode_y_first(boxes: Tensor, anchors: Tensor) -> Tensor:
    return encode(boxes, anchors)[:, [1, 0, 3, 2]]


def anchor_labels(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    best, best_of_box = iou.amax(dim=0), iou.amax(dim=1, keepdim=True)
    rescued = ((iou == best_of_box) & (best_of_box > 0)).any(dim=0)
    labels = torch.full_like(best, -1, dtype=torch.int64)
    labels[best < negative_iou] = 0
    labels[(best >= positive_iou) | rescued] = 1
    return labels


def _background_last(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    labels = anchor_labels(iou, positive_iou, negative_iou)
    labels[iou.amax(dim=0) < negative_iou] = 0
    return labels


def _padding_rescues(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    labels = anchor_labels(iou, positive_iou, negative_iou)
    labels[(iou == iou.amax(dim=1, keepdim=True)).any(dim=0)] = 1
    return labels


def left_out(anchors: Tensor, areas: Tensor) -> Tensor:
    low = torch.maximum(anchors[:, None, :2], areas[:, :2])
    high = torch.minimum(anchors[:, None, 2:], areas[:, 2:])
    shared = (high - low).clamp(min=0).prod(dim=2).sum(dim=1)
    return shared > 0.5 * (anchors[:, 2:] - anchors[:, :2]).prod(dim=1)


def _shared(anchors: Tensor, areas: Tensor) -> Tensor:
    sides = torch.minimum(anchors[:, None, 2:], areas[:, 2:]) - torch.maximum(anchors[:, None, :2], areas[:, :2])
    return sides.clamp(min=0).prod(dim=2)


def _by_iou(anchors: Tensor, areas: Tensor) -> Tensor:
    return (box_iou(anchors, areas) > 0.5).any(dim=1)


def _by_share_of_area(anchors: Tensor, areas: Tensor) -> Tensor:
    return (_shared(anchors, areas) > 0.5 * (areas[:, 2:] - areas[:, :2]).prod(dim=1)).any(dim=1)


def label_map(labels: Tensor, height: int, width: int) -> Tensor:
    by_cell = labels.unflatten(1, (height, width, -1))  # (B, H, W, A)
    return by_cell.permute(0, 3, 1, 2).reshape(len(labels), 1, -1, width)


def _plain_reshape(labels: Tensor, height: int, width: int) -> Tensor:
    return labels.reshape(len(labels), 1, -1, width)


def _boxes(generator: torch.Generator, count: int) -> Tensor:
    corner = torch.rand(count, 2, generator=generator) * 80
    return torch.cat([corner, corner + 8 + torch.rand(count, 2, generator=generator) * 40], dim=1)


def _generator(random: Random) -> torch.Generator:
    return torch.Generator().manual_seed(random.randrange(2**32))


def _encode_cases(random: Random) -> Sequence[Case]:
    generator = _generator(random)
    fixed = Case((torch.tensor([[10.0, 10.0, 30.0, 50.0]]), torch.tensor([[0.0, 0.0, 20.0, 20.0]])))
    return [fixed, *(Case((_boxes(generator, n), _boxes(generator, n))) for n in random.sample(range(1, 30), 4))]


def _label_cases(random: Random) -> Sequence[Case]:
    generator = _generator(random)
    weak = torch.tensor([[0.9, 0.5, 0.1, 0.0], [0.0, 0.1, 0.2, 0.0], [0.0, 0.0, 0.0, 0.0]])
    drawn = [
        torch.cat([torch.rand(k, n, generator=generator) ** 3, torch.zeros(1, n)])
        for k, n in zip((1, 2, 4), random.sample(range(20, 60), 3), strict=True)
    ]
    return [Case((iou, 0.7, 0.3)) for iou in (weak, *drawn)]


def _area_cases(random: Random) -> Sequence[Case]:
    generator = _generator(random)
    anchors = torch.tensor([[10.0, 10.0, 30.0, 30.0], [90.0, 10.0, 110.0, 30.0], [0.0, 0.0, 120.0, 120.0]])
    wide = torch.tensor([[0.0, 0.0, 100.0, 100.0]])
    halves = torch.tensor([[0.0, 0.0, 60.0, 40.0], [60.0, 0.0, 120.0, 40.0]])
    fixed = [Case((anchors, wide)), Case((anchors, halves)), Case((anchors, torch.zeros(0, 4)))]
    return fixed + [Case((_boxes(generator, n), _boxes(generator, 1) * 1.5)) for n in random.sample(range(8, 40), 6)]


def _map_cases(random: Random) -> Sequence[Case]:
    drawn = [tuple(random.randint(2, 6) for _ in range(4)) for _ in range(4)]
    sizes = [(1, 2, 3, 2), (1, 3, 2, 1), *drawn]
    return [Case((torch.arange(b * h * w * a).view(b, -1), h, w)) for b, h, w, a in sizes]


def _close(given: object, expected: Tensor) -> bool:
    return isinstance(given, Tensor) and given.shape == expected.shape and torch.allclose(given, expected, atol=1e-5)


def _same(given: object, expected: Tensor) -> bool:
    return isinstance(given, Tensor) and given.shape == expected.shape and torch.equal(given, expected.to(given.dtype))


EXERCISES = (
    Exercise(
        key="13.encode",
        task="Deltas (N, 4) that move `anchors` (N, 4) onto `boxes` (N, 4): dx / w, dy / h, log w'/w, log h'/h.",
        reference=encode,
        cases=_encode_cases,
        agree=_close,
        hints=(
            "Middles and sizes of both first.",
            "A width is x2 - x1, nothing more; the shift is divided by the *anchor's* size.",
            "`torch.cat([(center - anchor_center) / anchor_size, torch.log(size / anchor_size)], dim=1)`",
        ),
        mistakes=(
            Mistake(
                "counts pixels",
                "you added 1 to widths and heights. That is the size of a box whose last pixel is inside; corners here "
                "are real numbers. Whoever encodes with the 1 and decodes without it moves every box.",
                "fizyr/keras-retinanet issue 171, 2017; rbgirshick/py-faster-rcnn issue 328, 2016",
                answers=(_encode_inclusive,),
            ),
            Mistake(
                "y first",
                "your deltas stand in the order y, x, height, width. Nothing raises: the network learns them, and "
                "whoever decodes them as x, y moves boxes along the wrong edge.",
                "pytorch/vision issue 1856, 2020; chenyuntc/simple-faster-rcnn-pytorch issue 39, 2018",
                answers=(_encode_y_first,),
            ),
        ),
    ),
    Exercise(
        key="13.anchor_labels",
        task="Labels (N,) of anchors from their IoU (M, N) with the true boxes: 1, 0, or -1 for those between.",
        reference=anchor_labels,
        cases=_label_cases,
        agree=_same,
        hints=(
            "Start with -1 everywhere, and set what you are sure of.",
            "Every true box makes its best anchors positive, however little they overlap. In which order do you write?",
            "A row of zeros is padding, or a box that no anchor touches: its best IoU is 0, and nobody's best is that.",
        ),
        mistakes=(
            Mistake(
                "background last",
                "you wrote the background after the positives, and took back the best anchors of small boxes: their "
                "IoU may be below `negative_iou`. Then such a box has no anchor at all.",
                "ijkguo/mx-rcnn issue 104, 2018, had both at once",
                answers=(_background_last,),
            ),
            Mistake(
                "padding has a best anchor",
                "a padded box overlaps every anchor by 0, and 0 is also its maximum: `iou == iou.amax(...)` holds for "
                "all, and every anchor becomes positive. Ask for more than 0.",
                "padding takes part in the loss: jwyang/faster-rcnn.pytorch issue 553, 2019",
                answers=(_padding_rescues,),
            ),
        ),
    ),
    Exercise(
        key="13.left_out",
        task="Which anchors have more than half of themselves in don't-care areas (D, 4), D may be 0: (N,) bool.",
        reference=left_out,
        cases=_area_cases,
        agree=_same,
        hints=(
            "Of the anchor, you want the part that lies inside. What do you divide by?",
            "Not by the union: a small anchor in the middle of a large area has a tiny IoU with it.",
            "Shared square pixels, summed over the areas, against half of the anchor's own.",
        ),
        mistakes=(
            Mistake(
                "IoU",
                "you asked for the IoU. A small anchor in the middle of a large area overlaps little of the *union*, "
                "and stays a negative: the network learns that there is nothing in an area that nobody has labelled.",
                "tensorpack/tensorpack pull request 984, 2018",
                answers=(_by_iou,),
            ),
            Mistake(
                "share of the area",
                "you divided by the size of the area. Then only anchors that cover half of a large area are left out, "
                "and the small ones inside it stay.",
                "facebookresearch/detectron2 pull request 1910, 2020",
                answers=(_by_share_of_area,),
            ),
        ),
    ),
    Exercise(
        key="13.label_map",
        task="Labels (B, H * W * A), A of each cell side by side, as a map (B, 1, A * H, W).",
        reference=label_map,
        cases=_map_cases,
        agree=_same,
        hints=(
            "Give every axis its own dimension first: (B, H, W, A).",
            "Which order does A * H, W ask for? The first of the two varies slowest.",
            "`permute(0, 3, 1, 2)` before the reshape.",
        ),
        mistakes=(
            Mistake(
                "reshape alone",
                "the shape is right, and every label stands at another anchor's place: a reshape keeps the order in "
                "memory, where the A anchors of a cell are neighbours.",
                "endernewton/tf-faster-rcnn issue 332, 2018; jwyang/fpn.pytorch issue 6, 2018",
                answers=(_plain_reshape,),
            ),
        ),
    ),
)
