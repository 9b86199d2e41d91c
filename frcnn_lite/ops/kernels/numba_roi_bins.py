"""`roi_bins` compiled for the CPU by numba: the same rule in the same arithmetic, hence the same bins, in one call
instead of some forty tensor operations, which take as long as pooling a few dozen small regions."""

import numpy as np
import torch
from torch import Tensor

from frcnn_lite.ops.kernels.numba_roi_pool import njit


@njit
def _round_half_away(x):  # type: ignore[no-untyped-def]
    whole = np.trunc(x)
    return whole + np.copysign(1, x) if abs(x - whole) >= 0.5 else whole


@njit
def _cell(edge, limit):  # type: ignore[no-untyped-def]
    """`edge` cut to the map; of what is no number, 0."""
    return int(min(edge, limit)) if edge > 0 else 0


@njit
def _bins(first, last, limit, steps, bins):  # type: ignore[no-untyped-def]
    """One side of one region: `steps` are 0, 1, ... count in the dtype of the corners, so that products stay in it."""
    count = bins.shape[0]
    size = max(last - first + steps[1], steps[1]) / steps[count]
    for i in range(count):
        bins[i, 0] = _cell(np.floor(steps[i] * size) + first, limit)
        bins[i, 1] = _cell(np.ceil(steps[i + 1] * size) + first, limit)


@njit
def _all_bins(rois, scale, height, width, row_steps, column_steps, images, rows, columns):  # type: ignore[no-untyped-def]
    corner = np.empty(4, rois.dtype)
    for r in range(rois.shape[0]):
        images[r] = int(rois[r, 0])
        for k in range(4):
            corner[k] = _round_half_away(rois[r, k + 1] * scale)
        _bins(corner[1], corner[3], height, row_steps, rows[r])
        _bins(corner[0], corner[2], width, column_steps, columns[r])


def bins(
    rois: Tensor, map_size: tuple[int, int] | torch.Size, ph: int, pw: int, spatial_scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """What `roi_bins` gives for the same arguments."""
    corners = rois.detach().contiguous().numpy()
    number = corners.dtype.type
    count = len(corners)
    images = torch.empty(count, dtype=torch.int64)
    rows, columns = (torch.empty(count, p, 2, dtype=torch.int64) for p in (ph, pw))
    steps = (np.arange(p + 1, dtype=number) for p in (ph, pw))
    height, width = map(number, map_size)
    results = (x.numpy() for x in (images, rows, columns))
    _all_bins(corners, number(spatial_scale), height, width, *steps, *results)
    return images, rows, columns
