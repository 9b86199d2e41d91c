"""A batch from which the detector could not learn, or in which it would find nothing, is refused in words.

Shapes and types are looked at everywhere, and values on the CPU alone: on a GPU, to look at them would be to wait. What
is not finite passes, since a trainer that meets such a loss names the image.
"""

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from frcnn_lite.detection.config import FasterRCNNConfig

Array = NDArray[Any]
SLACK = 0.01  # of a pixel's range, for those who resize without a clamp


def check_batch(
    images: Tensor, boxes: Tensor | None, labels: Tensor | None, seeds: Tensor | None, config: FasterRCNNConfig
) -> None:
    """Raises ValueError for the first argument of `FasterRCNN.forward` that is wrong."""
    channels = config.in_channels
    if images.dim() != 4 or images.shape[1] != channels or not torch.is_floating_point(images):
        raise ValueError(f"`images` must be (B, {channels}, H, W) floats in 0..1, got {_describe(images)}")
    if _may_look(images):
        check_pixels(images.numpy())
    given = {"boxes": boxes, "labels": labels, "seeds": seeds}
    missing = [name for name, value in given.items() if value is None]
    if boxes is None or labels is None or seeds is None:
        if len(missing) < 3:
            raise ValueError(f"training needs `boxes`, `labels` and `seeds`; missing: {', '.join(missing)}")
        return
    batch = len(images)
    if labels.dim() != 2 or len(labels) != batch or torch.is_floating_point(labels):
        raise ValueError(f"`labels` must be ({batch}, M) whole numbers, a row for each image, got {_describe(labels)}")
    if labels.shape[1] == 0:
        raise ValueError("`labels` must have at least one column; pad boxes with zeros and labels with -1")
    if boxes.shape != (*labels.shape, 4):
        raise ValueError(f"`boxes` must be {(*labels.shape, 4)}, four numbers for each label, got {tuple(boxes.shape)}")
    if seeds.shape != (batch,):
        raise ValueError(f"`seeds` must be ({batch},), one for each image, got {tuple(seeds.shape)}")
    if _may_look(boxes) and _may_look(labels):
        check_labels(labels.numpy(), config.num_classes, least=-1)
        check_corners(boxes.numpy()[labels.numpy() >= 0])


def check_pixels(images: Array) -> None:
    """Raises ValueError for pixels of 0..255, or from which a mean was subtracted: the detector does that itself."""
    low, high = (images.min(), images.max()) if images.size else (0, 1)
    if low < -SLACK or high > 1 + SLACK:
        raise ValueError(f"`images` must be in 0..1, the detector subtracts the mean itself, got {low:g} to {high:g}")


def check_labels(labels: Array, num_classes: int, *, least: int = 0) -> None:
    """Raises ValueError for a label that is no class; the background has none."""
    if labels.size and not least <= labels.min() <= labels.max() < num_classes:
        padding = " (-1 where there is no box)" if least < 0 else ""
        raise ValueError(
            f"`labels` must be from 0 to {num_classes - 1}{padding}, got {labels.min()} to {labels.max()}. "
            "Where they begin at 1, as torchvision's do, subtract 1: the background has no label here"
        )


def check_corners(boxes: Array) -> None:
    """Raises ValueError for boxes (n, 4) without area, which a width and a height in the place of a corner often make,
    and for boxes that count in parts of the picture and not in pixels."""
    wrong = (boxes[:, 2:] <= boxes[:, :2]).any(axis=1)
    if wrong.any():
        box = " ".join(f"{number:g}" for number in boxes[wrong][0].tolist())
        raise ValueError(f"`boxes` must be x1 y1 x2 y2 with x1 < x2 and y1 < y2, not width and height, got {box}")
    if len(boxes) and boxes.max() <= 1:
        raise ValueError(
            f"`boxes` must be in pixels, not parts of the picture, got none that ends beyond {boxes.max():g}"
        )


def _may_look(tensor: Tensor) -> bool:
    """Whether NumPy can see the values as they are in memory, which calls no operator of torch."""
    recorded = torch.compiler.is_compiling() or torch.jit.is_tracing()
    return tensor.device.type == "cpu" and not (recorded or tensor.requires_grad or tensor.dtype is torch.bfloat16)


def _describe(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)} {tensor.dtype}"
