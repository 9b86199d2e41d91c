"""Target assignment: which candidates a network is trained on, and which box each of them is to reach."""

from typing import NamedTuple

import torch
from torch import Tensor

from frcnn_lite.ops import box_iou, encode_boxes, match, sample
from frcnn_lite.ops.matching import IGNORED
from frcnn_lite.ops.sampling import gather_rows


class Targets(NamedTuple):
    """S sampled candidates of each image, and what each of them is trained to give.

    Attributes:
        indices: (B, S) int64, places among the candidates, see `sample`.
        labels: (B, S) int64, the class of the box that the candidate is matched to, or background.
        weights: (B, S), 1 where the candidate was sampled and 0 where it only fills the row.
        box_weights: (B, S), 0 for background; its `deltas` carry no meaning.
        boxes: (B, S, 4), the candidates themselves.
        deltas: (B, S, 4), what moves each candidate onto its box.
    """

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
        boxes: (B, M, 4) of the ground truth.
        labels: (B, M) int64, negative where a row of the ground truth is padding.
        keys: (B, N) float32, see `ops.random_keys`.
        delta_weights: (4,), see `ops.encode_boxes`.
        thresholds: `positive_iou` and `negative_iou` of `match`, which explains `allow_low_quality`, too.
        size: how many to sample, see `sample`.
        positive_fraction: how many of these may be positive, see `sample`.
        background: the label of a candidate that is matched to no box.
        valid: (B, N) bool; candidates that are not valid are ignored.

    Raises:
        ValueError: a shape is not as above, or N or M is 0.
    """
    _check_shapes(candidates, boxes, labels, keys, delta_weights, valid)
    candidates = candidates.expand(len(labels), -1, -1)
    matched = match(box_iou(boxes, candidates), labels >= 0, *thresholds, allow_low_quality=allow_low_quality)
    if valid is not None:
        matched = torch.where(valid, matched, IGNORED)
    indices, matched, weights = sample(matched, keys, size, positive_fraction)
    positive, nearest = matched >= 0, matched.clamp(min=0)
    chosen = gather_rows(candidates, indices)
    deltas = encode_boxes(gather_rows(boxes, nearest), chosen, delta_weights)
    found = torch.where(positive, labels.gather(1, nearest).long(), background)
    weights = weights.to(boxes.dtype)
    return Targets(indices, found, weights, weights * positive, chosen, deltas)


def _check_shapes(
    candidates: Tensor, boxes: Tensor, labels: Tensor, keys: Tensor, delta_weights: Tensor, valid: Tensor | None
) -> None:
    """Raise ValueError for the first argument that does not fit those before it: broadcasting would hide it."""
    if labels.dim() != 2 or 0 in labels.shape[1:]:
        raise ValueError(f"`labels` must be (B, M), M at least 1, got {tuple(labels.shape)}")
    batch = (len(labels),)
    if (
        candidates.dim() < 2
        or candidates.shape[-1] != 4
        or 0 in candidates.shape
        or candidates.shape[:-2] not in ((), batch)
    ):
        raise ValueError(
            f"`candidates` must be (N, 4) or ({len(labels)}, N, 4), N at least 1, got {tuple(candidates.shape)}"
        )
    rows = (*batch, candidates.shape[-2])
    expected = {"boxes": (*labels.shape, 4), "keys": rows, "delta_weights": (4,), "valid": rows}
    given = {"boxes": boxes, "keys": keys, "delta_weights": delta_weights, "valid": valid}
    for name, shape in expected.items():
        tensor = given[name]
        if tensor is not None and tensor.shape != shape:
            raise ValueError(f"`{name}` must be {shape}, got {tuple(tensor.shape)}")
