"""How many digits a trained detector finds when its box head reads the regions by a different operator."""

from collections.abc import Callable
from unittest import mock

import torch
from torch import Tensor

from course.kit.files import CHECKPOINTS
from frcnn_lite import data, engine, ops
from frcnn_lite.detection import box_head

Read = Callable[[Tensor, Tensor, int, float], Tensor]
OVERLAPS = (0.5, 0.75)


def found_digits(read: Read, pictures: int = 100) -> tuple[int, ...]:
    """Of the digits in so many test pictures: how many there are, and how many are found at an IoU of 0.5 and of 0.75.

    read(features, rois, output_size, spatial_scale) takes the place of RoI pooling, with which the detector trained. A
    digit is found where a result with its name and a score above 0.5 overlaps it by more than the IoU.
    """
    detector = engine.load_weights(CHECKPOINTS / "digits.pt")
    scenes = data.DigitScenes("test", pictures)
    with mock.patch.object(box_head, "roi_pool", read):
        judged = engine.judge(detector, scenes, batch_size=50)
    counts = [0, 0]
    for picture in judged:
        sure = picture.found_scores > 0.5
        overlaps = ops.box_iou(picture.boxes, picture.found_boxes[sure])
        overlaps *= picture.labels[:, None] == picture.found_labels[sure]
        for k, least in enumerate(OVERLAPS):
            counts[k] += int((overlaps > least).any(dim=1).sum())
    return sum(len(picture.boxes) for picture in judged), *counts


def beside(cells: float) -> Read:
    """RoI pooling that reads every region some cells further right and down; less than 0 is left and up."""

    def read(features: Tensor, rois: Tensor, size: int, scale: float) -> Tensor:
        shift = torch.tensor([0.0, cells, cells, cells, cells], device=rois.device) / scale
        return ops.roi_pool(features, rois + shift, size, scale)

    return read
