"""Non-maximum suppression with a static shape: a mask instead of a list of indices.

Greedy NMS walks down the boxes by score and drops each one that overlaps a kept one by more than the threshold.
Written for all boxes at once, with `suppresses[i, j]` true when i scores above j and IoU(i, j) > threshold, the kept
set is the one solution of

    keep[j] = not any(keep[i] and suppresses[i, j])

Starting from all-true and applying the right-hand side t times settles every box whose chain of suppressors is at most
t long, so K rounds always suffice; a round that changes nothing proves that the solution is reached, usually after 2 to
9. (The same form is known as Cluster-NMS: Zheng et al., "Enhancing geometric factors in model learning and inference
for object detection and instance segmentation", 2020.)

To ask whether a round has changed anything is to wait for the device, and costs nothing on the CPU, where nobody has to
wait. So the CPU asks after every round. A GPU is asked after `UNASKED` rounds, then after twice as many, and so on:
once, unless a chain of suppressors is longer than that. Rounds beyond the last one that is needed change nothing.
"""

import struct

import torch
from torch import Tensor

UNASKED = 16
"""Rounds that a GPU computes before it is asked for the first time whether they were enough."""


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

    On a GPU it waits for the device once, and again after 32, 64, ... rounds where boxes suppress each other in chains
    of more than 16.
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
    # A product of 0/1 matrices counts suppressors exactly in float32 (K < 2^24), far faster than a masked any(). Of
    # 1 - count, the positive part is 1 for a box that stays and 0 for all others.
    counts = suppresses.to(torch.float32)
    one = counts.new_ones(len(counts), 1, counts.shape[1])
    keep, asked = one, 1 if counts.device.type == "cpu" else UNASKED
    with torch.autocast(counts.device.type, enabled=False):
        for taken in range(1, counts.shape[1] + 1):
            previous, keep = keep, torch.baddbmm(one, keep, counts, alpha=-1).relu_()
            if taken == asked:
                if torch.equal(previous, keep):
                    break
                asked = taken + 1 if counts.device.type == "cpu" else 2 * taken
    return keep.squeeze(1) > 0


def round_down(threshold: float, dtype: torch.dtype) -> float:
    """The largest number of `dtype` that is <= threshold: comparing with it decides as comparing in double would."""
    if dtype != torch.float32 or threshold <= 0:
        return threshold
    (bits,) = struct.unpack("<i", struct.pack("<f", threshold))  # of the nearest float32, which may lie above
    nearest, below = (struct.unpack("<f", struct.pack("<i", k))[0] for k in (bits, bits - 1))
    return nearest if nearest <= threshold else below
