"""Box arithmetic: IoU, and the deltas by which a detector moves one box onto another.

A box is `(x1, y1, x2, y2)` in absolute pixels with real-valued corners: its width is `x2 - x1`. (Code bases that
descend from Caffe's py-faster-rcnn count pixels inclusively and write `x2 - x1 + 1`; nothing here does.)
Every function works on any number of leading batch dimensions.
"""

import math

import torch
from torch import Tensor

MAX_LOG_SCALE = math.log(1000 / 16)
"""Upper bound of a predicted log size ratio, so that `exp` cannot overflow early in training (as in torchvision)."""

MIN_SIZE = 1e-3
"""Smallest width or height, in pixels, that `encode_boxes` takes a logarithm of."""


def box_iou(first: Tensor, second: Tensor) -> Tensor:
    """Intersection over union of every pair.

    Two boxes that are both empty have IoU 0 here, not 0 / 0, so padded rows stay finite.

    Args:
        first: `(..., N, 4)`.
        second: `(..., M, 4)`.

    Returns:
        `(..., N, M)`.
    """
    first_low, first_high = first.unsqueeze(-2).split(2, dim=-1)
    second_low, second_high = second.unsqueeze(-3).split(2, dim=-1)
    sides = torch.minimum(first_high, second_high) - torch.maximum(first_low, second_low)
    intersection = sides.clamp_(min=0).prod(dim=-1)
    union = (first_high - first_low).prod(dim=-1) + (second_high - second_low).prod(dim=-1) - intersection
    return intersection / union.clamp_(min=torch.finfo(union.dtype).tiny)


def _centers_and_sizes(boxes: Tensor) -> tuple[Tensor, Tensor]:
    low, high = boxes.split(2, dim=-1)
    return (low + high) * 0.5, high - low


def encode_boxes(boxes: Tensor, reference: Tensor, weights: Tensor) -> Tensor:
    """Deltas that move `reference` onto `boxes`: `(dx / w, dy / h, log(w' / w), log(h' / h))` times `weights`.

    As in R-CNN (Girshick et al., 2014, appendix C). Sizes below `MIN_SIZE` are raised to it: padded rows give finite
    numbers, which the caller weighs by 0.

    Args:
        boxes: `(..., 4)`.
        reference: `(..., 4)`, the anchors or proposals.
        weights: `(4,)`.

    Returns:
        `(..., 4)`.
    """
    center, size = _centers_and_sizes(boxes)
    reference_center, reference_size = _centers_and_sizes(reference)
    size, reference_size = size.clamp(min=MIN_SIZE), reference_size.clamp(min=MIN_SIZE)
    shift = (center - reference_center) / reference_size
    return torch.cat([shift, torch.log(size / reference_size)], dim=-1) * weights


def decode_boxes(deltas: Tensor, reference: Tensor, weights: Tensor) -> Tensor:
    """The boxes that `deltas` make of `reference`: the inverse of `encode_boxes`.

    Args:
        deltas: `(..., 4)`. Logarithms of sizes are limited to `MAX_LOG_SCALE`.
        reference: `(..., 4)`, the anchors or proposals.
        weights: `(4,)`, those of `encode_boxes`.

    Returns:
        `(..., 4)`.
    """
    shift, log_scale = (deltas / weights).split(2, dim=-1)
    center, size = _centers_and_sizes(reference)
    center = center + shift * size
    half = size * torch.exp(log_scale.clamp(max=MAX_LOG_SCALE)) * 0.5
    return torch.cat([center - half, center + half], dim=-1)


def clip_boxes(boxes: Tensor, height: int, width: int) -> Tensor:
    """Boxes `(..., 4)` cut to an image of `height` x `width` pixels."""
    x1, y1, x2, y2 = boxes.unbind(-1)
    x1, x2 = x1.clamp(0, width), x2.clamp(0, width)
    y1, y2 = y1.clamp(0, height), y2.clamp(0, height)
    return torch.stack([x1, y1, x2, y2], dim=-1)
