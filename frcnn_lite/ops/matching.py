"""Matching: which ground-truth box, if any, each anchor or proposal answers for."""

import torch
from torch import Tensor

BACKGROUND, IGNORED = -1, -2
"""In the place of a ground-truth box's index, as in torchvision's `Matcher`: a negative, and what is not trained on."""


def match(
    iou: Tensor, real: Tensor, positive_iou: float, negative_iou: float, *, allow_low_quality: bool = False
) -> Tensor:
    """Match candidates to ground truth by IoU, for a whole batch at once.

    Args:
        iou: (B, M, N), ground truth by candidates.
        real: (B, M) bool, false where a row of the ground truth is padding.
        positive_iou: a candidate whose best IoU is at least this is positive,
        negative_iou: one whose best IoU is below this is background.
        allow_low_quality: each real ground-truth box also makes its best candidates (all of them, on ties) positive,
            whatever their IoU, so that none stays without one. As in torchvision's `Matcher`, such a candidate still
            answers for the box that *it* overlaps best.

    Returns:
        (B, N) int64: the index of each positive candidate's ground-truth box, `BACKGROUND` or `IGNORED` for others.
    """
    iou = torch.where(real.unsqueeze(2), iou, -1)
    best, nearest = iou.max(dim=1)
    matched = nearest.masked_fill(best < positive_iou, IGNORED).masked_fill(best < negative_iou, BACKGROUND)
    if allow_low_quality:
        highest = iou.amax(dim=2, keepdim=True)
        rescued = ((iou == highest) & (highest > 0)).any(dim=1)
        matched = torch.where(rescued, nearest, matched)
    return matched
