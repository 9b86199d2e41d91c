"""Non-maximum suppression with a static shape: a mask instead of a list of indices.

Greedy NMS walks down the boxes by score and drops each one that overlaps a kept one by more than the threshold.
Written for all boxes at once, with `suppresses[i, j]` true when i scores above j and IoU(i, j) > threshold, the kept
set is the one solution of

    keep[j] = not any(keep[i] and suppresses[i, j])

Starting from all-true and applying the right-hand side t times settles every box whose chain of suppressors is at most
t long, so K rounds always suffice; a round that changes nothing proves that the solution is reached, usually after 2 to
9. (The same form is known as Cluster-NMS: Zheng et al., "Enhancing geometric factors in model learning and inference
for object detection and instance segmentation", 2020.)
"""

import numpy as np
import torch
from torch import Tensor

from frcnn_lite.ops.boxes import box_iou
from frcnn_lite.ops.kernels import compiled


def nms_mask(boxes: Tensor, scores: Tensor, iou_threshold: float, classes: Tensor | None = None) -> Tensor:
    """Which boxes of each image greedy non-maximum suppression keeps.

    Args:
        boxes: (B, K, 4) float, `xyxy`.
        scores: (B, K) float. Equal scores are taken in order of position. Give rows that are padding the score -inf:
            they come last and so suppress no real box.
        iou_threshold: a box goes when its IoU with a kept box of higher score is greater than this.
        classes: optional (B, K) int64. Boxes of different classes then leave each other alone. (Exact; the common trick
            of shifting each class by an offset loses coordinate bits.)

    Returns:
        (B, K) bool, in the order given; the same boxes as `torchvision.ops.nms` on each image.
    """
    if boxes.dim() != 3 or boxes.shape[-1] != 4 or scores.shape != boxes.shape[:2]:
        raise ValueError(f"want boxes (B, K, 4) and scores (B, K), got {tuple(boxes.shape)} and {tuple(scores.shape)}")
    if classes is not None and classes.shape != scores.shape:
        raise ValueError(f"classes must have the shape of scores {tuple(scores.shape)}, got {tuple(classes.shape)}")
    return torch.ops.frcnn_lite.nms_mask(boxes.detach(), scores.detach(), iou_threshold, classes)


# One operator, so that a profile, a graph and a virtual GPU see one node whatever runs inside.
torch.library.define(
    "frcnn_lite::nms_mask", "(Tensor boxes, Tensor scores, float iou_threshold, Tensor? classes) -> Tensor"
)


@torch.library.impl("frcnn_lite::nms_mask", "default")
def _nms_mask(boxes: Tensor, scores: Tensor, iou_threshold: float, classes: Tensor | None) -> Tensor:
    order = scores.argsort(dim=1, descending=True, stable=True)
    boxes = boxes.gather(1, order.unsqueeze(-1).expand_as(boxes))
    classes = None if classes is None else classes.gather(1, order)
    threshold = round_down(iou_threshold, boxes.dtype)
    kernel = compiled("nms") if boxes.device.type == "cpu" else None
    keep = _keep_sorted(boxes, classes, threshold) if kernel is None else kernel.keep_sorted(boxes, classes, threshold)
    return torch.zeros_like(keep).scatter_(1, order, keep)


@torch.library.register_fake("frcnn_lite::nms_mask")
def _(boxes: Tensor, scores: Tensor, iou_threshold: float, classes: Tensor | None) -> Tensor:
    return torch.empty_like(scores, dtype=torch.bool)


def round_down(threshold: float, dtype: torch.dtype) -> float:
    """The largest number of `dtype` that is <= threshold: comparing with it decides as comparing in double would."""
    if dtype != torch.float32:
        return threshold
    rounded = np.float32(threshold)
    return float(rounded if float(rounded) <= threshold else np.nextafter(rounded, np.float32(-np.inf)))


def _keep_sorted(boxes: Tensor, classes: Tensor | None, threshold: float) -> Tensor:
    """The fixed-point form for boxes (B, K, 4) in descending order of score; returns (B, K) bool.

    On a GPU the test for convergence waits for the device, once a round.
    """
    suppresses = (box_iou(boxes, boxes) > threshold).triu(diagonal=1)
    if classes is not None:
        suppresses &= classes.unsqueeze(2) == classes.unsqueeze(1)
    # bmm of 0/1 matrices counts suppressors exactly in float32 (K < 2^24) and is far faster than a masked any().
    counts = suppresses.to(torch.float32)
    keep = torch.ones(boxes.shape[:2], dtype=torch.bool, device=boxes.device)
    for _ in range(boxes.shape[1]):
        previous, keep = keep, torch.bmm(keep.unsqueeze(1).to(torch.float32), counts).squeeze(1) == 0
        if torch.equal(previous, keep):
            break
    return keep
