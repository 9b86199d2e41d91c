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

import struct

import torch
from torch import Tensor


def nms_mask(iou: Tensor, scores: Tensor, iou_threshold: float, classes: Tensor | None = None) -> Tensor:
    """Which boxes of each image greedy non-maximum suppression keeps.

    Args:
        iou: (B, K, K) float, the overlap of every box of an image with every other, such as
            `box_iou(boxes, boxes)` of boxes (B, K, 4).
        scores: (B, K) float. Equal scores are taken in order of position. Give rows that are padding the score -inf:
            they come last and so suppress no real box.
        iou_threshold: a box goes when its IoU with a kept box of higher score is greater than this.
        classes: optional (B, K) int64. Boxes of different classes then leave each other alone. (Exact; the common trick
            of shifting each class by an offset loses coordinate bits.)

    Returns:
        (B, K) bool, in the order given; the same boxes as `torchvision.ops.nms` on each image.

    Raises:
        ValueError: a shape is not as above.

    The test for the last round reads a value back, so on a GPU every round waits for the device.
    """
    if iou.dim() != 3 or iou.shape[1] != iou.shape[2]:
        raise ValueError(f"`iou` must be (B, K, K), got {tuple(iou.shape)}")
    if scores.shape != iou.shape[:2]:
        raise ValueError(f"`scores` must be (B, K) = {tuple(iou.shape[:2])}, got {tuple(scores.shape)}")
    if classes is not None and classes.shape != scores.shape:
        raise ValueError(f"`classes` must be (B, K) = {tuple(scores.shape)}, got {tuple(classes.shape)}")
    rank = scores.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
    suppresses = (iou > round_down(iou_threshold, iou.dtype)) & (rank.unsqueeze(2) < rank.unsqueeze(1))
    if classes is not None:
        suppresses &= classes.unsqueeze(2) == classes.unsqueeze(1)
    # bmm of 0/1 matrices counts suppressors exactly in float32 (K < 2^24) and is far faster than a masked any().
    counts = suppresses.to(torch.float32)
    keep = torch.ones_like(scores, dtype=torch.bool)
    for _ in range(keep.shape[1]):
        previous, keep = keep, torch.bmm(keep.unsqueeze(1).to(torch.float32), counts).squeeze(1) == 0
        if torch.equal(previous, keep):
            break
    return keep


def round_down(threshold: float, dtype: torch.dtype) -> float:
    """The largest number of `dtype` that is <= threshold: comparing with it decides as comparing in double would."""
    if dtype != torch.float32 or threshold <= 0:
        return threshold
    (bits,) = struct.unpack("<i", struct.pack("<f", threshold))  # of the nearest float32, which may lie above
    nearest, below = (struct.unpack("<f", struct.pack("<i", k))[0] for k in (bits, bits - 1))
    return nearest if nearest <= threshold else below
