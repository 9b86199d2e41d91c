"""RoI max pooling compiled for the CPU by numba, over the blocks of channels that `numba_blocks.py` describes."""

import numpy as np
import torch
from torch import Tensor

from .numba_blocks import (
    BLOCK,
    announce,
    area_of,
    block_count,
    cells_read,
    extents_of,
    in_threads,
    load_block,
    njit,
    store_block,
)

ORDERED = True
"""Sums run in the same order at every run."""
announce(__name__, "RoI max pooling")


@njit
def load_extent(features, channel, extent, width, block):  # type: ignore[no-untyped-def]
    """Copy a rectangle of some channels of (C, cells), row by row, to the first rows of block (cells, BLOCK)."""
    for y in range(extent[0], extent[1]):
        row = block[(y - extent[0]) * (extent[3] - extent[2]) :]
        load_block(features, channel, y * width + extent[2], y * width + extent[3], row)


@njit
def pool_region(block, extent, rows, columns, width, lowest, best, where):  # type: ignore[no-untyped-def]
    """Values and places of one region, for all channels of a block.

    Args:
        block: (cells, BLOCK), the features of the part of the map that `extent` names, row by row.
        extent: top, bottom, left and right of that part.
        rows: (ph, 2), [start, end) of each bin.
        columns: (pw, 2), the same.
        width: of the whole map.
        lowest: what a bin begins with.
        best: (bins, BLOCK), takes the values; 0 where a bin is empty.
        where: (bins, BLOCK) int32, takes row * width + column of each; -1 for none.
    """
    stride = extent[3] - extent[2]
    k = 0
    for i in range(rows.shape[0]):
        for j in range(columns.shape[0]):
            top, bottom, left, right = rows[i, 0], rows[i, 1], columns[j, 0], columns[j, 1]
            filled = top < bottom and left < right
            for c in range(BLOCK):
                best[k, c] = lowest if filled else 0
                where[k, c] = -1
            for y in range(top, bottom):
                for x in range(left, right):
                    p, position = (y - extent[0]) * stride + x - extent[2], np.int32(y * width + x)
                    # Two selects instead of one branch: this form the compiler turns into vector code.
                    for c in range(BLOCK):
                        larger = block[p, c] > best[k, c]
                        where[k, c] = position if larger else where[k, c]
                        best[k, c] = block[p, c] if larger else best[k, c]
            k += 1


@njit
def _pool(first, last, features, images, rows, columns, width, lowest, values, argmax):  # type: ignore[no-untyped-def]
    """Tasks first to last; task t is block t % blocks of image t // blocks."""
    blocks, cells = (features.shape[1] + BLOCK - 1) // BLOCK, features.shape[2]
    extents, whole = extents_of(rows, columns), np.array([0, cells // width, 0, width])
    at_once = cells_read(images, extents, features.shape[0]) >= cells
    largest = cells if at_once.any() else 0
    for r in range(images.size):
        largest = max(largest, area_of(extents[r]))
    block = np.empty((largest, BLOCK), features.dtype)
    best = np.empty((values.shape[2], BLOCK), features.dtype)
    where = np.empty((values.shape[2], BLOCK), np.int32)
    for task in range(first, last):
        image, channel = task // blocks, task % blocks * BLOCK
        if at_once[image]:
            load_block(features[image], channel, 0, cells, block)
        for r in range(images.size):
            if images[r] == image:
                extent = whole if at_once[image] else extents[r]
                if not at_once[image]:
                    load_extent(features[image], channel, extent, width, block)
                pool_region(block, extent, rows[r], columns[r], width, lowest, best, where)
                store_block(best, channel, values[r])
                if argmax.size:
                    store_block(where, channel, argmax[r])


@njit
def _scatter(first, last, grad, argmax, images, out):  # type: ignore[no-untyped-def]
    blocks = (out.shape[1] + BLOCK - 1) // BLOCK
    for task in range(first, last):
        image, channel = task // blocks, task % blocks * BLOCK
        for r in range(images.size):
            if images[r] == image:
                for c in range(channel, min(channel + BLOCK, out.shape[1])):
                    for k in range(grad.shape[2]):
                        if argmax[r, c, k] >= 0:
                            out[image, c, np.uint32(argmax[r, c, k])] += grad[r, c, k]


def pool(
    features: Tensor, images: Tensor, rows: Tensor, columns: Tensor, argmax_bits: int = 32
) -> tuple[Tensor, Tensor]:
    """Values and argmax of integer bins, as the operator returns them.

    Args:
        features: (N, C, H, W).
        images, rows, columns: those of `roi_bins`.
        argmax_bits: 16 or 32, the size of its integers; 0 for none of it.

    Returns:
        Values and argmax, each (R, C, ph, pw).
    """
    given, lowest = features.dtype, max(torch.finfo(torch.float32).min, torch.finfo(features.dtype).min)
    features = features.detach().to(torch.promote_types(given, torch.float32))  # exact, and so is the way back
    values = features.new_empty(rows.shape[0], features.shape[1], rows.shape[1], columns.shape[1])
    argmax = torch.empty_like(values, dtype=torch.int16 if argmax_bits == 16 else torch.int32)
    argmax = argmax if argmax_bits else argmax.new_empty(0, 0, 0, 0)
    maps, width = features.flatten(2).numpy(), features.shape[3]
    results = (x.flatten(2).numpy() for x in (values, argmax))
    bins = images.numpy(), rows.numpy(), columns.numpy()
    arguments = maps, *bins, width, maps.dtype.type(lowest), *results
    in_threads(lambda a, b: _pool(a, b, *arguments), block_count(features))
    return values.to(given), argmax if argmax_bits else argmax.view(0)


def scatter(grad: Tensor, argmax: Tensor, images: Tensor, size: list[int], channels_last: bool = False) -> Tensor:
    """The gradient of the features; sums run in order of region and bin, so the number of threads changes no bit.

    Args:
        grad: (R, C, ph, pw).
        argmax: (R, C, ph, pw), as `pool` gives it.
        images: (R,) int64.
        size: [N, C, H, W].
        channels_last: the memory format of what is returned.

    Returns:
        (N, C, H, W) of the dtype of `grad`.
    """
    given = grad.dtype
    grad = grad.detach().to(torch.promote_types(given, torch.float32)).contiguous()
    form = torch.channels_last if channels_last else torch.contiguous_format
    out = torch.empty(size, dtype=grad.dtype, memory_format=form).zero_()
    arrays = [x.numpy() for x in (grad.flatten(2), argmax.flatten(2), images, out.flatten(2))]
    in_threads(lambda a, b: _scatter(a, b, *arrays), block_count(out))
    return out.to(given)
