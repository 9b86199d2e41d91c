"""Target assignment: which candidates a network is trained on, and which box each of them is to reach."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from frcnn_lite.ops.boxes import box_iou, encode_boxes
from frcnn_lite.ops.kernels import compiled
from frcnn_lite.ops.matching import IGNORED, match
from frcnn_lite.ops.sampling import gather_rows, sample


class Targets(NamedTuple):
    """S sampled candidates an image: `indices`, `matched` and `weights` (B, S) are those of `sample`; `boxes` (B, S, 4)
    the candidates themselves, and `deltas` (B, S, 4) what moves each onto the box it is matched to, or onto any box of
    the image where `matched` is negative."""

    indices: Tensor
    matched: Tensor
    weights: Tensor
    boxes: Tensor
    deltas: Tensor


@torch.no_grad()
def assign_targets(
    candidates: Tensor,
    boxes: Tensor,
    real: Tensor,
    keys: Tensor,
    delta_weights: Tensor,
    *,
    thresholds: tuple[float, float],
    size: int,
    positive_fraction: float,
    valid: Tensor | None = None,
    allow_low_quality: bool = False,
) -> Targets:
    """Match candidates to ground truth, sample them, and encode the boxes that the sampled ones are to reach.

    Args:
        candidates: (N, 4) the same for every image, or (B, N, 4).
        boxes, real: (B, M, 4) ground truth, and (B, M) bool, false where a row of it is padding.
        keys: (B, N) float32, see `ops.random_keys`.
        delta_weights: (4,), see `ops.encode_boxes`.
        thresholds: `positive_iou` and `negative_iou` of `match`, which explains `allow_low_quality`, too.
        size, positive_fraction: how many to sample, see `sample`.
        valid: (B, N) bool; candidates that are not are ignored.
    """
    arguments = (*thresholds, size, positive_fraction, allow_low_quality)
    return Targets(
        *torch.ops.frcnn_lite.assign_targets(candidates, valid, boxes, real, keys, delta_weights, *arguments)
    )


# One operator: its steps make some seventy small tensors, where a compiled kernel needs none.
torch.library.define(
    "frcnn_lite::assign_targets",
    "(Tensor candidates, Tensor? valid, Tensor boxes, Tensor real, Tensor keys, Tensor delta_weights, "
    "float positive_iou, float negative_iou, int size, float positive_fraction, bool allow_low_quality) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor)",
)


@torch.library.impl("frcnn_lite::assign_targets", "default")
def _assign(candidates: Tensor, valid: Tensor | None, boxes: Tensor, *others: Any) -> tuple[Tensor, ...]:
    kernel = compiled("targets") if boxes.device.type == "cpu" and boxes.dtype == candidates.dtype else None
    assign = assign_in_torch if kernel is None else kernel.assign
    return tuple(assign(candidates, valid, boxes, *others))


def assign_in_torch(
    candidates: Tensor,
    valid: Tensor | None,
    boxes: Tensor,
    real: Tensor,
    keys: Tensor,
    delta_weights: Tensor,
    positive_iou: float,
    negative_iou: float,
    size: int,
    positive_fraction: float,
    allow_low_quality: bool,
) -> Targets:
    """What the operator means, step by step; on GPUs, also what it does. Nothing in it waits for the device."""
    matched = match(box_iou(boxes, candidates), real, positive_iou, negative_iou, allow_low_quality=allow_low_quality)
    if valid is not None:
        matched = torch.where(valid, matched, IGNORED)
    indices, matched, weights = sample(matched, keys, size, positive_fraction)
    chosen = gather_rows(candidates.expand(len(boxes), -1, -1), indices)
    deltas = encode_boxes(gather_rows(boxes, matched.clamp(min=0)), chosen, delta_weights)
    return Targets(indices, matched, weights.to(boxes.dtype), chosen, deltas)


@torch.library.register_fake("frcnn_lite::assign_targets")
def _(candidates: Tensor, valid: Tensor | None, boxes: Tensor, real: Tensor, *others: Any) -> tuple[Tensor, ...]:
    size = others[4]
    rows = real.new_empty((len(boxes), size), dtype=torch.int64)
    of_box = boxes.new_empty((len(boxes), size, 4))
    return rows, torch.empty_like(rows), boxes.new_empty(rows.shape), of_box, torch.empty_like(of_box)
