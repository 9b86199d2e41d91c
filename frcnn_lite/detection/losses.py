"""Losses as sums and counts per image, to be divided once, at the very end.

The mean over all images is not made of the devices' means, unless every device has the same count. Sums and counts add
up exactly, however the batch is split (easy-faster-rcnn.pytorch returns per-image vectors for the same reason).
"""

from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor


class LossParts(NamedTuple):
    """Per-image `sums` and `counts`, dicts of name -> (B,) tensors; a loss is total sum / total count."""

    sums: dict[str, Tensor]
    counts: dict[str, Tensor]


def objectness_sum(logits: Tensor, positive: Tensor, weights: Tensor) -> Tensor:
    """Binary cross-entropy (B,) of sampled logits (B, S); `positive` and `weights` (B, S) floats."""
    return F.binary_cross_entropy_with_logits(logits, positive, weights, reduction="none").sum(dim=1)


def classification_sum(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Cross-entropy (B,) of sampled logits (B, S, C + 1) against labels (B, S) int64, weighted (B, S)."""
    losses = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
    return (losses.view_as(weights) * weights).sum(dim=1)


def box_sum(deltas: Tensor, targets: Tensor, weights: Tensor, beta: float) -> Tensor:
    """Smooth L1 (B,) over the four deltas of (B, S, 4), weighted (B, S): 0 for an image whose weights are all 0, yet
    still a function of `deltas`, so that every parameter receives a gradient."""
    losses = F.smooth_l1_loss(deltas, targets, reduction="none", beta=beta)
    return (losses * weights.unsqueeze(-1)).sum(dim=(1, 2))
