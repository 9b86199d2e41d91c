"""Random keys compiled for the CPU by numba: one pass instead of fifty operators on small tensors."""

import numpy as np
import torch
from torch import Tensor

from frcnn_lite.ops.kernels.numba_roi_pool import njit
from frcnn_lite.ops.random_keys import MASK, mix

_mix = njit(mix)  # the same lines, on integers


@njit
def _fill(seeds, key, keys):  # type: ignore[no-untyped-def]
    positions = np.arange(1, keys.shape[1] + 1)
    for n in range(positions.size):
        positions[n] = _mix(positions[n])
    for b in range(seeds.size):
        row = _mix(_mix(seeds[b] & MASK) ^ ((seeds[b] >> 32) & MASK) ^ key)
        for n in range(positions.size):
            keys[b, n] = _mix(_mix(row ^ positions[n])) >> 8


def keys(seeds: Tensor, n: int, key: int) -> Tensor:
    """Like `ops.random_keys.keys_in_torch`."""
    out = torch.empty(len(seeds), n)
    _fill(seeds.contiguous().numpy(), key, out.numpy())  # type: ignore[call-arg]
    return out.mul_(2.0**-24)
