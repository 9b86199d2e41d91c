"""Non-maximum suppression as the detector calls it: from boxes, and as one operator in a graph."""

import torch
from torch import Tensor

from frcnn_lite.ops import box_iou, nms_mask


def suppress(boxes: Tensor, scores: Tensor, iou_threshold: float, classes: Tensor | None = None) -> Tensor:
    """Which of boxes (B, K, 4) with scores (B, K) `ops.nms_mask` keeps: (B, K) bool."""
    # The number of rounds depends on the data, so a graph that is recorded once holds them as one node.
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        return torch.ops.frcnn_lite.nms_mask(boxes, scores, iou_threshold, classes)
    return nms_mask(box_iou(boxes, boxes), scores, iou_threshold, classes)


torch.library.define(
    "frcnn_lite::nms_mask", "(Tensor boxes, Tensor scores, float iou_threshold, Tensor? classes) -> Tensor"
)


@torch.library.impl("frcnn_lite::nms_mask", "default")
def _(boxes: Tensor, scores: Tensor, iou_threshold: float, classes: Tensor | None) -> Tensor:
    return nms_mask(box_iou(boxes, boxes), scores, iou_threshold, classes)


@torch.library.register_fake("frcnn_lite::nms_mask")
def _(boxes: Tensor, scores: Tensor, iou_threshold: float, classes: Tensor | None) -> Tensor:
    return torch.empty_like(scores, dtype=torch.bool)
