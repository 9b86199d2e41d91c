"""Sampling a fixed number of positives and negatives from each image, without a data-dependent shape."""

from typing import NamedTuple

import torch
from torch import Tensor

IGNORED = -2
"""The number that `match` writes in the place of a ground-truth box's index for a candidate that is not trained on."""


class Sample(NamedTuple):
    """`indices` (B, S) int64 into the candidates; `matched` (B, S) int64, what `match` said of them; `weights` (B, S),
    1 for a sampled candidate and 0 for a slot that an image could not fill (its index is then arbitrary, but valid)."""

    indices: Tensor
    matched: Tensor
    weights: Tensor


def sample(matched: Tensor, keys: Tensor, size: int, positive_fraction: float) -> Sample:
    """Draw up to `size` candidates of each image: at most `positive_fraction` positives, the rest background.

    Sorting by random keys puts all positives first, then all background, then what is ignored, each in random order.
    The sampled positives are the front of the first run and the sampled background the front of the second.

    Args:
        matched: (B, N) int64 as `match` returns it: the index of a ground-truth box, -1 for background, or `IGNORED`.
        keys: (B, N) float32 in [0, 1), see `ops.random_keys`.
    """
    # Stable: equal keys do occur, and every device must settle them alike.
    order = (keys - matched.clamp(max=0)).argsort(dim=1, stable=True)
    num_positive = (matched >= 0).sum(dim=1, keepdim=True)
    num_candidates = (matched > IGNORED).sum(dim=1, keepdim=True)
    limit = int(size * positive_fraction)
    slot = torch.arange(size, device=keys.device)
    # Slots beyond the limit pass over the positives that are too many.
    place = slot + (slot >= limit) * (num_positive - limit).clamp(min=0)
    weights = (place < num_candidates).to(keys.dtype)
    indices = order.gather(1, place.clamp(max=matched.shape[1] - 1))
    return Sample(indices, matched.gather(1, indices), weights)


def gather_rows(values: Tensor, indices: Tensor) -> Tensor:
    """Rows `indices` (B, S) of each image's `values` (B, N, D): (B, S, D)."""
    return values.gather(1, indices.unsqueeze(-1).expand(-1, -1, values.shape[-1]))
