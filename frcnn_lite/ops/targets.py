"""Target assignment: which candidates a network is trained on, and which box each of them is to reach."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from frcnn_lite.ops.boxes import box_iou, encode_boxes
from frcnn_lite.ops.kernels import compiled
from frcnn_lite.ops.matching import IGNORED, match
from frcnn_lite.ops.sampling import gather_rows, sample


class Targets(NamedTuple):
    """S sampled candidates an image: `indices` and `weights` (B, S) are those of `sample`, `labels` (B, S) int64 the
    classes of the boxes they are matched to; `boxes` (B, S, 4) the candidates themselves, and `deltas` (B, S, 4) what
    moves each onto its box. `box_weights` (B, S) are 0 for those that have none, whose deltas lead to any box."""

    indices: Tensor
    labels: Tensor
    weights: Tensor
    box_weights: Tensor
    boxes: Tensor
    deltas: Tensor


@torch.no_grad()
def assign_targets(
    candidates: Tensor,
    boxes: Tensor,
    labels: Tensor,
    keys: Tensor,
    delta_weights: Tensor,
    *,
    thresholds: tuple[float, float],
    size: int,
    positive_fraction: float,
    background: int,
    valid: Tensor | None = None,
    allow_low_quality: bool = False,
) -> Targets:
    """Match candidates to ground truth, sample them, and encode the boxes that the sampled ones are to reach.

    Args:
        candidates: (N, 4) the same for every image, or (B, N, 4).
        boxes, labels: ground truth (B, M, 4), and (B, M) int64, negative where a row of it is padding.
        keys: (B, N) float32, see `ops.random_keys`.
        delta_weights: (4,), see `ops.encode_boxes`.
        thresholds: `positive_iou` and `negative_iou` of `match`, which explains `allow_low_quality`, too.
        size, positive_fraction: how many to sample, see `sample`.
        background: the label of a candidate that is matched to no box.
        valid: (B, N) bool; candidates that are not are ignored.

    Raises:
        ValueError: if the shapes do not fit, or there is nothing to match.
    """
    _check_shapes(candidates, boxes, labels, keys, delta_weights, valid)
    arguments = (*thresholds, size, positive_fraction, allow_low_quality, background)
    return Targets(
        *torch.ops.frcnn_lite.assign_targets(candidates, valid, boxes, labels, keys, delta_weights, *arguments)
    )


def _check_shapes(
    candidates: Tensor, boxes: Tensor, labels: Tensor, keys: Tensor, delta_weights: Tensor, valid: Tensor | None
) -> None:
    """Raise ValueError where the shapes do not fit: a compiled kernel would read past the end of what is there."""
    images, count = boxes.shape[0], candidates.shape[-2] if candidates.dim() > 1 else 0
    rows = (images, count)
    fit = candidates.shape[-1:] == (4,) and candidates.shape[:-2] in ((), (images,)) and keys.shape == rows
    fit = fit and boxes.shape == (*labels.shape, 4) and labels.dim() == 2 and delta_weights.shape == (4,)
    if not fit or 0 in (count, labels.shape[1]) or (valid is not None and valid.shape != rows):
        given = {"candidates": candidates, "boxes": boxes, "labels": labels, "keys": keys, "valid": valid}
        given["delta_weights"] = delta_weights
        shapes = ", ".join(f"{name} {tuple(x.shape)}" for name, x in given.items() if x is not None)
        raise ValueError(
            "want candidates (N, 4) or (B, N, 4), boxes (B, M, 4), labels (B, M), keys and valid (B, N), delta_weights "
            f"(4,), with N and M at least 1, got {shapes}"
        )


# One operator: its steps make some seventy small tensors, where a compiled kernel needs none.
torch.library.define(
    "frcnn_lite::assign_targets",
    "(Tensor candidates, Tensor? valid, Tensor boxes, Tensor labels, Tensor keys, Tensor delta_weights, "
    "float positive_iou, float negative_iou, int size, float positive_fraction, bool allow_low_quality, "
    "int background) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
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
    labels: Tensor,
    keys: Tensor,
    delta_weights: Tensor,
    positive_iou: float,
    negative_iou: float,
    size: int,
    positive_fraction: float,
    allow_low_quality: bool,
    background: int,
) -> Targets:
    """What the operator means, step by step; on GPUs, also what it does. Nothing in it waits for the device."""
    iou = box_iou(boxes, candidates)
    matched = match(iou, labels >= 0, positive_iou, negative_iou, allow_low_quality=allow_low_quality)
    if valid is not None:
        matched = torch.where(valid, matched, IGNORED)
    indices, matched, weights = sample(matched, keys, size, positive_fraction)
    chosen = gather_rows(candidates.expand(len(boxes), -1, -1), indices)
    positive, nearest = matched >= 0, matched.clamp(min=0)
    deltas = encode_boxes(gather_rows(boxes, nearest), chosen, delta_weights)
    found = torch.where(positive, labels.gather(1, nearest).long(), background)
    weights = weights.to(boxes.dtype)
    return Targets(indices, found, weights, weights * positive, chosen, deltas)


@torch.library.register_fake("frcnn_lite::assign_targets")
def _(candidates: Tensor, valid: Tensor | None, boxes: Tensor, labels: Tensor, *others: Any) -> tuple[Tensor, ...]:
    slots = (boxes.shape[0], others[4])
    rows = (labels.new_empty(slots, dtype=torch.int64) for _ in range(2))
    weights = (boxes.new_empty(slots) for _ in range(2))
    return *rows, *weights, *(boxes.new_empty((*slots, 4)) for _ in range(2))
