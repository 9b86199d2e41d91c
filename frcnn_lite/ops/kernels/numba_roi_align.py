"""RoIAlign compiled for the CPU by numba, over the blocks of channels that `numba_blocks.py` describes.

Each row of a region is first summed into its pw columns of bins, and this strip then into the ph rows of bins that it
has weight in, so that a cell is read once however many points of the grids lie around it. Going back, the same loops
run the other way.
"""

import numpy as np
import torch
from torch import Tensor

from .numba_blocks import (
    BLOCK,
    announce,
    block_count,
    cells_read,
    extents_of,
    in_threads,
    load_block,
    njit,
    store_block,
)

announce(__name__, "RoIAlign")


@njit
def _spans(weights):  # type: ignore[no-untyped-def]
    """First cell with weight and the one behind the last, (R, P, 2), of weights (R, P, cells)."""
    spans = np.zeros((*weights.shape[:2], 2), np.int64)
    for r in range(weights.shape[0]):
        for i in range(weights.shape[1]):
            for cell in range(weights.shape[2] - 1, -1, -1):
                if weights[r, i, cell] != 0:
                    spans[r, i, 0] = cell
                    spans[r, i, 1] = max(spans[r, i, 1], cell + 1)
    return spans


@njit
def _align_region(block, rows, columns, row_spans, column_spans, strip, values):  # type: ignore[no-untyped-def]
    width, pw = columns.shape[1], columns.shape[0]
    values[:] = 0
    for y in range(row_spans[:, 0].min(), row_spans[:, 1].max()):
        strip[:] = 0
        for j in range(pw):
            for x in range(column_spans[j, 0], column_spans[j, 1]):
                weight = columns[j, x]
                for c in range(BLOCK):
                    strip[j, c] += weight * block[y * width + x, c]
        for i in range(rows.shape[0]):
            weight = rows[i, y]
            if weight != 0:
                for j in range(pw):
                    for c in range(BLOCK):
                        values[i * pw + j, c] += weight * strip[j, c]


@njit
def _spread_region(grad, rows, columns, row_spans, column_spans, strip, block):  # type: ignore[no-untyped-def]
    width, pw = columns.shape[1], columns.shape[0]
    for y in range(row_spans[:, 0].min(), row_spans[:, 1].max()):
        strip[:] = 0
        for i in range(rows.shape[0]):
            weight = rows[i, y]
            if weight != 0:
                for j in range(pw):
                    for c in range(BLOCK):
                        strip[j, c] += weight * grad[i * pw + j, c]
        for j in range(pw):
            for x in range(column_spans[j, 0], column_spans[j, 1]):
                weight = columns[j, x]
                for c in range(BLOCK):
                    block[y * width + x, c] += weight * strip[j, c]


@njit
def _load_rows(features, channel, extent, width, block):  # type: ignore[no-untyped-def]
    """Copy the cells of one region to where block (HW, BLOCK) has them."""
    for row in range(extent[0] * width, extent[1] * width, width):
        load_block(features, channel, row + extent[2], row + extent[3], block[row + extent[2] :])


@njit
def _align(first, last, features, images, rows, columns, values):  # type: ignore[no-untyped-def]
    """Tasks first to last; task t is block t % blocks of image t // blocks."""
    blocks = (features.shape[1] + BLOCK - 1) // BLOCK
    row_spans, column_spans = _spans(rows), _spans(columns)
    extents = extents_of(row_spans, column_spans)
    read = cells_read(images, extents, features.shape[0])
    block = np.zeros((features.shape[2], BLOCK), features.dtype)
    found = np.empty((values.shape[2], BLOCK), features.dtype)
    strip = np.empty((columns.shape[1], BLOCK), features.dtype)
    for task in range(first, last):
        image, channel = task // blocks, task % blocks * BLOCK
        if read[image] >= features.shape[2]:
            load_block(features[image], channel, 0, features.shape[2], block)
        for r in range(images.size):
            if images[r] == image:
                if read[image] < features.shape[2]:
                    _load_rows(features[image], channel, extents[r], columns.shape[2], block)
                _align_region(block, rows[r], columns[r], row_spans[r], column_spans[r], strip, found)
                store_block(found, channel, values[r])


@njit
def _spread(first, last, grad, images, rows, columns, out):  # type: ignore[no-untyped-def]
    blocks = (out.shape[1] + BLOCK - 1) // BLOCK
    row_spans, column_spans = _spans(rows), _spans(columns)
    block = np.empty((out.shape[2], BLOCK), grad.dtype)
    given = np.zeros((grad.shape[2], BLOCK), grad.dtype)
    strip = np.empty((columns.shape[1], BLOCK), grad.dtype)
    for task in range(first, last):
        image, channel = task // blocks, task % blocks * BLOCK
        block[:] = 0
        for r in range(images.size):
            if images[r] == image:
                load_block(grad[r], channel, 0, grad.shape[2], given)
                _spread_region(given, rows[r], columns[r], row_spans[r], column_spans[r], strip, block)
        store_block(block, channel, out[image])


def align(features: Tensor, images: Tensor, row_weights: Tensor, column_weights: Tensor) -> Tensor:
    """Values (R, C, ph, pw) of features (N, C, H, W), images (R,) int64 and the weights of `align_weights`."""
    wide = features.detach().to(row_weights.dtype)
    shape = row_weights.shape[0], features.shape[1], row_weights.shape[1], column_weights.shape[1]
    values = wide.new_empty(shape)
    arrays = [x.numpy() for x in (wide.flatten(2), images, row_weights, column_weights, values.flatten(2))]
    in_threads(lambda a, b: _align(a, b, *arrays), block_count(features))
    return values.to(features.dtype)


def spread(
    grad: Tensor,
    images: Tensor,
    row_weights: Tensor,
    column_weights: Tensor,
    size: list[int],
    channels_last: bool = False,
) -> Tensor:
    """Gradient (N, C, H, W); sums run in order of region, so they are the same with any number of threads."""
    wide = grad.detach().to(row_weights.dtype).contiguous()
    form = torch.channels_last if channels_last else torch.contiguous_format
    out = torch.empty(size, dtype=wide.dtype, memory_format=form)
    arrays = [x.numpy() for x in (wide.flatten(2), images, row_weights, column_weights, out.flatten(2))]
    in_threads(lambda a, b: _spread(a, b, *arrays), block_count(out))
    return out.to(grad.dtype)
