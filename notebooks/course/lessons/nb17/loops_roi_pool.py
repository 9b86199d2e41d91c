"""RoI max pooling as loops over everything, to compare the kernels with: it shares no line with them, nor the bins.

Written from the rule in `roi_pool.py` alone, in scalars of the rois' precision, and slow: a small case takes seconds.
"""

import math

import numpy as np
import torch
from torch import Tensor


def loops_pool(features: Tensor, rois: Tensor, ph: int, pw: int, spatial_scale: float) -> tuple[Tensor, Tensor]:
    """Values (R, C, ph, pw) and argmax, int32, of features (N, C, H, W) and rois (R, 5), both on the CPU."""
    maps, boxes = features.detach().double().numpy(), rois.detach().numpy()
    channels, height, width = maps.shape[1:]
    number = boxes.dtype.type
    values = torch.zeros(len(boxes), channels, ph, pw, dtype=features.dtype)
    argmax = torch.full(values.shape, -1, dtype=torch.int32)
    for r, (image, *corners) in enumerate(boxes):
        x1, y1, x2, y2 = (half_away(corner * number(spatial_scale)) for corner in corners)
        for i in range(ph):
            top, bottom = bin_edges(y1, y2, i, ph, height, number)
            for j in range(pw):
                left, right = bin_edges(x1, x2, j, pw, width, number)
                for c in range(channels):
                    plane = maps[int(image), c]
                    found = first_largest(plane, range(top, bottom), range(left, right), _start(features.dtype))
                    if bottom > top and right > left:
                        values[r, c, i, j], argmax[r, c, i, j] = found
    return values, argmax


def half_away(x: np.floating) -> int:
    """Rule 1 for one number."""
    whole = int(x)
    return whole + int(abs(x - whole) >= 0.5) * (1 if x > 0 else -1)


def bin_edges(first: int, last: int, i: int, count: int, limit: int, number: type[np.floating]) -> tuple[int, int]:
    """Rules 2 and 3: first cell of bin i and the one behind its last."""
    size = number(max(last - first + 1, 1)) / number(count)
    edges = math.floor(number(i) * size) + first, math.ceil(number(i + 1) * size) + first
    return min(max(edges[0], 0), limit), min(max(edges[1], 0), limit)


def first_largest(plane: np.ndarray, rows: range, columns: range, start: float) -> tuple[float, int]:
    """Rule 4: the largest number in these rows and columns, and its flat position."""
    best, where = start, -1
    for y in rows:
        for x in columns:
            if plane[y, x] > best:
                best, where = float(plane[y, x]), y * plane.shape[1] + x
    return best, where


def _start(dtype: torch.dtype) -> float:
    return max(float(np.finfo(np.float32).min), torch.finfo(dtype).min)


def loops_scatter(grad: Tensor, argmax: Tensor, images: Tensor, size: list[int]) -> Tensor:
    """The gradient of each value added to the feature it came from; returns (N, C, H, W)."""
    out = torch.zeros(size, dtype=grad.dtype)  # noqa: FL002 the oracle runs on the CPU
    for r, c, i, j in np.ndindex(*grad.shape):
        where = int(argmax[r, c, i, j])
        if where >= 0:
            out[int(images[r]), c].view(-1)[where] += grad[r, c, i, j]
    return out
