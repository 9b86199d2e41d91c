"""RoI max pooling compiled for the CPU by numba.

Features are read with the channels innermost: a bin's edges are then computed once for all channels, and the comparison
runs over consecutive memory. The kernels release the interpreter lock, so replicas in threads run side by side.
"""

import numba
import numpy as np
import torch
from torch import Tensor


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _pool(features, images, rows, columns, values, argmax):  # type: ignore[no-untyped-def]
    width, channels = features.shape[2], features.shape[3]
    best = np.empty(channels, features.dtype)
    where = np.empty(channels, np.int32)
    for r in range(images.shape[0]):
        for i in range(rows.shape[1]):
            for j in range(columns.shape[1]):
                top, bottom, left, right = rows[r, i, 0], rows[r, i, 1], columns[r, j, 0], columns[r, j, 1]
                if top >= bottom or left >= right:
                    values[r, :, i, j] = 0
                    argmax[r, :, i, j] = -1
                    continue
                best[:] = features[images[r], top, left]
                where[:] = top * width + left
                for y in range(top, bottom):
                    for x in range(left, right):
                        cell = features[images[r], y, x]
                        position = np.int32(y * width + x)
                        # Two selects instead of one branch: this form the compiler turns into vector code.
                        for c in range(channels):
                            larger = cell[c] > best[c]
                            where[c] = position if larger else where[c]
                            best[c] = cell[c] if larger else best[c]
                for c in range(channels):
                    values[r, c, i, j] = best[c]
                    argmax[r, c, i, j] = where[c]


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _scatter(grad, argmax, images, out):  # type: ignore[no-untyped-def]
    for r in range(grad.shape[0]):
        for c in range(grad.shape[1]):
            plane = out[images[r], c]
            for k in range(grad.shape[2]):
                if argmax[r, c, k] >= 0:
                    plane[argmax[r, c, k]] += grad[r, c, k]


def pool(features: Tensor, images: Tensor, rows: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """Values and argmax (R, C, ph, pw) of integer bins; see `frcnn_lite.ops.roi_pool`."""
    values = features.new_empty(rows.shape[0], features.shape[1], rows.shape[1], columns.shape[1])
    argmax = torch.empty_like(values, dtype=torch.int32)
    channels_last = features.detach().permute(0, 2, 3, 1).contiguous()
    _pool(channels_last.numpy(), images.numpy(), rows.numpy(), columns.numpy(), values.numpy(), argmax.numpy())
    return values, argmax


def scatter(grad: Tensor, argmax: Tensor, images: Tensor, size: list[int]) -> Tensor:
    """Gradient (N, C, H, W), contiguous; sums run in order of region and bin, so they are the same at every run."""
    n, c, h, w = size
    out = grad.new_zeros(n, c, h * w)
    _scatter(grad.detach().contiguous().flatten(2).numpy(), argmax.flatten(2).numpy(), images.numpy(), out.numpy())
    return out.view(n, c, h, w)
