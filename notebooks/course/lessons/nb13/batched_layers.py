"""The target layers of `numpy_layers` on the device: a whole batch at once, fixed shapes, nothing read by the host.

Ground truth is padded to M boxes an image, don't-care areas to D; `real` (B, M) and zeros mark what is padding. What an
image draws is a function of its `keys` alone. Shapes are those of 2017 with B in place of 1.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from course.lessons.nb13.numpy_layers import DONTCARE_SHARE, Rule
from frcnn_lite.ops import box_iou, encode_boxes
from frcnn_lite.ops.matching import IGNORED, match
from frcnn_lite.ops.sampling import gather_rows, sample


class Truth(NamedTuple):
    """`boxes` (B, M, 4) and `labels` (B, M) int64, -1 marking padding; `hard` (B, M) bool; `dontcare` (B, D, 4)."""

    boxes: Tensor
    labels: Tensor
    hard: Tensor
    dontcare: Tensor

    @property
    def real(self) -> Tensor:
        """(B, M) bool, false where a box is padding."""
        return self.labels >= 0


class AnchorTargets(NamedTuple):
    """`labels` (B, 1, A * H, W): 1, 0, or -1 for "do not train on it"; the others (B, 4 * A, H, W)."""

    labels: Tensor
    bbox_targets: Tensor
    inside_weights: Tensor
    outside_weights: Tensor


class RoiTargets(NamedTuple):
    """`rois` (B, S, 4), `labels` (B, S), 0 for background and -1 for an empty slot, `deltas` (B, S, 4)."""

    rois: Tensor
    labels: Tensor
    deltas: Tensor


@torch.no_grad()
def anchor_target_layer(
    anchors: Tensor, size: tuple[int, int], truth: Truth, keys: Tensor, rule: Rule
) -> AnchorTargets:
    """Label anchors (H * W * A, 4) for B images; size is (H, W), keys (B, H * W * A) in [0, 1)."""
    iou = box_iou(truth.boxes, anchors)
    matched = match(iou, truth.real, rule.positive_iou, rule.negative_iou, allow_low_quality=True)
    highest = iou.amax(dim=2, keepdim=True)
    of_hard = (iou >= rule.positive_iou) | ((iou == highest) & (highest > 0))
    left_out = (of_hard & (truth.hard & truth.real)[..., None]).any(dim=1) | in_dontcare(anchors, truth.dontcare)
    drawn = sample(matched.masked_fill(left_out, IGNORED), keys, rule.samples, rule.positive_fraction)
    label = torch.where(drawn.weights > 0, (drawn.matched >= 0).long(), -1)
    # A slot that stayed empty points anywhere; the larger of two labels is the one that was drawn.
    labels = torch.full_like(keys, -1, dtype=torch.int64).scatter_reduce(1, drawn.indices, label, "amax")

    chosen = labels == 1
    boxes = gather_rows(truth.boxes, matched.clamp(min=0))
    targets = encode_boxes(boxes, anchors, anchors.new_ones(4))
    inside = chosen[..., None].to(anchors.dtype).expand_as(targets)
    count = (labels >= 0).sum(dim=1).clamp(min=1)[:, None, None]
    outside = ((labels >= 0)[..., None] / count).expand_as(targets)
    maps = (as_map(x, size) for x in (targets * inside, inside, outside))
    return AnchorTargets(as_map(labels[..., None], size).reshape(len(labels), 1, -1, size[1]), *maps)


@torch.no_grad()
def proposal_target_layer(rois: Tensor, truth: Truth, keys: Tensor, rule: Rule) -> RoiTargets:
    """Sample rois (B, R, 4) and the true boxes themselves; keys (B, R + M) in [0, 1) order them."""
    boxes = torch.cat([rois, truth.boxes], dim=1)
    valid = torch.cat([truth.real.new_ones(rois.shape[:2]), truth.real], dim=1)
    iou = box_iou(truth.boxes, boxes)
    matched = match(iou, truth.real, rule.positive_iou, rule.positive_iou)
    hard = ((iou >= rule.positive_iou) & (truth.hard & truth.real)[..., None]).any(dim=1)
    valid &= ~hard & ~in_dontcare(boxes, truth.dontcare)
    drawn = sample(matched.masked_fill(~valid, IGNORED), keys, rule.samples, rule.positive_fraction)
    positive, gt_index = drawn.matched >= 0, drawn.matched.clamp(min=0)
    kept = gather_rows(boxes, drawn.indices)
    own = torch.where(positive[..., None], gather_rows(truth.boxes, gt_index), kept)
    labels = torch.where(positive, truth.labels.gather(1, gt_index), 0)
    labels = torch.where(drawn.weights > 0, labels, -1)
    return RoiTargets(kept, labels, encode_boxes(own, kept, kept.new_ones(4)))


def in_dontcare(boxes: Tensor, areas: Tensor) -> Tensor:
    """Which boxes (N, 4) or (B, N, 4) have more than half of themselves in the areas (B, D, 4); (B, N) bool."""
    low = torch.maximum(boxes[..., :, None, :2], areas[:, None, :, :2])
    high = torch.minimum(boxes[..., :, None, 2:], areas[:, None, :, 2:])
    shared = (high - low).clamp(min=0).prod(dim=-1).sum(dim=-1)
    return shared > DONTCARE_SHARE * (boxes[..., 2:] - boxes[..., :2]).prod(dim=-1)


def as_map(rows: Tensor, size: tuple[int, int]) -> Tensor:
    """(B, H * W * A, n) rows, A anchors at each cell, to (B, A * n, H, W)."""
    return rows.unflatten(1, (*size, -1)).permute(0, 3, 4, 1, 2).flatten(1, 2)
