"""Matching: which ground-truth box, if any, each anchor or proposal answers for."""

from typing import NamedTuple

import torch
from torch import Tensor


class Matches(NamedTuple):
    """For each of N candidates of B images: the `gt_index` (B, N) int64 of its best ground-truth box, and whether it is
    `positive` or `negative` (B, N) bool. Neither means: left out of training."""

    gt_index: Tensor
    positive: Tensor
    negative: Tensor


def match(
    iou: Tensor, real: Tensor, positive_iou: float, negative_iou: float, *, allow_low_quality: bool = False
) -> Matches:
    """Match candidates to ground truth by IoU, for a whole batch at once.

    Args:
        iou: (B, M, N), ground truth by candidates.
        real: (B, M) bool, false where a row of the ground truth is padding.
        positive_iou: a candidate whose best IoU is at least this is positive,
        negative_iou: one whose best IoU is below this is negative.
        allow_low_quality: each real ground-truth box also makes its best candidates (all of them, on ties) positive,
            whatever their IoU, so that none stays without one. As in torchvision's `Matcher`, such a candidate still
            answers for the box that *it* overlaps best.
    """
    iou = torch.where(real.unsqueeze(2), iou, -1)
    best, gt_index = iou.max(dim=1)
    positive = best >= positive_iou
    negative = best < negative_iou
    if allow_low_quality:
        highest = iou.amax(dim=2, keepdim=True)
        rescued = ((iou == highest) & (highest > 0)).any(dim=1)
        positive, negative = positive | rescued, negative & ~rescued
    return Matches(gt_index, positive, negative)
