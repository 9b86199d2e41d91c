"""Sampling a fixed number of positives and negatives from each image, without a data-dependent shape."""

from typing import NamedTuple

import torch
from torch import Tensor


class Sample(NamedTuple):
    """`indices` (B, S) int64 into the candidates; `weights` (B, S), 1 for a sampled candidate and 0 for a slot that an
    image could not fill (its index is then arbitrary, but valid)."""

    indices: Tensor
    weights: Tensor


def sample(positive: Tensor, negative: Tensor, keys: Tensor, size: int, positive_fraction: float) -> Sample:
    """Draw up to `size` candidates of each image: at most `positive_fraction` positives, the rest negatives.

    Sorting by random keys puts all positives first, then all negatives, then the rest, each in random order. The
    sampled positives are the front of the first run and the sampled negatives the front of the second.

    Args:
        positive, negative: (B, N) bool, disjoint.
        keys: (B, N) float32 in [0, 1), see `ops.random_keys`.
    """
    n = positive.shape[1]
    group = 2 - 2 * positive.to(keys.dtype) - negative.to(keys.dtype)
    # Stable: equal keys do occur, and every device must settle them alike.
    order = (group + keys).argsort(dim=1, stable=True)
    num_positive = positive.sum(dim=1, keepdim=True)
    num_negative = negative.sum(dim=1, keepdim=True)
    taken_positive = num_positive.clamp(max=int(size * positive_fraction))
    slot = torch.arange(size, device=keys.device)
    # Slots after the sampled positives continue at the first negative.
    place = torch.where(slot < taken_positive, slot, slot - taken_positive + num_positive)
    weights = (place < num_positive + num_negative).to(keys.dtype)
    return Sample(order.gather(1, place.clamp(max=n - 1)), weights)


def gather_rows(values: Tensor, indices: Tensor) -> Tensor:
    """Rows `indices` (B, S) of each image's `values` (B, N, D): (B, S, D)."""
    return values.gather(1, indices.unsqueeze(-1).expand(-1, -1, values.shape[-1]))
