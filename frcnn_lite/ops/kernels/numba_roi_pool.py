"""RoI max pooling compiled for the CPU by numba.

A block of channels of one image is copied with the channels innermost, small enough to stay in the cache while every
region reads it: a bin's edges then serve the whole block, and the comparison runs over consecutive memory. Where the
regions together read less than the map, as few or small ones do, each one's rectangle is copied instead. Blocks share
nothing, so threads take them without locks; the kernels release the interpreter lock, and may be entered by any number
of threads at once. (numba's own `parallel=True` may not: under its default threading layer it aborts the process.)
"""

import ctypes
import functools
import itertools
import mmap
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import torch
from torch import Tensor

BLOCK = 64  # channels; a constant, so that the loops over them become vector code without a remainder
LANES = 8  # channels copied at a time, a constant for the same reason
njit = numba.njit(nogil=True, cache=True, error_model="numpy")


@njit
def load_block(features, channel, first, last, block):  # type: ignore[no-untyped-def]
    """Copy cells first to last of some channels of (C, cells) to the first rows of block (cells, BLOCK)."""
    for start in range(0, min(BLOCK, features.shape[0] - channel), LANES):
        some, copy = features[channel + start :, first:last], block[:, start:]
        if some.shape[0] >= LANES:
            for p in range(some.shape[1]):
                for c in range(LANES):
                    copy[p, c] = some[c, p]
        else:
            for p in range(some.shape[1]):
                for c in range(some.shape[0]):
                    copy[p, c] = some[c, p]


@njit
def extents_of(rows, columns):  # type: ignore[no-untyped-def]
    """Top, bottom, left and right (R, 4) of what each region reads, from the starts and ends (R, P, 2) of its bins."""
    extents = np.empty((rows.shape[0], 4), np.int64)
    for r in range(rows.shape[0]):
        extents[r, 0], extents[r, 1] = rows[r, :, 0].min(), rows[r, :, 1].max()
        extents[r, 2], extents[r, 3] = columns[r, :, 0].min(), columns[r, :, 1].max()
    return extents


@njit
def area_of(extent):  # type: ignore[no-untyped-def]
    """Cells of one region."""
    return (extent[1] - extent[0]) * (extent[3] - extent[2])


@njit
def cells_read(images, extents, count):  # type: ignore[no-untyped-def]
    """Cells that the regions of each of `count` images read, those of several regions as often."""
    cells = np.zeros(count, np.int64)
    for r in range(images.size):
        cells[images[r]] += area_of(extents[r])
    return cells


@njit
def load_extent(features, channel, extent, width, block):  # type: ignore[no-untyped-def]
    """Copy a rectangle of some channels of (C, cells), row by row, to the first rows of block (cells, BLOCK)."""
    for y in range(extent[0], extent[1]):
        row = block[(y - extent[0]) * (extent[3] - extent[2]) :]
        load_block(features, channel, y * width + extent[2], y * width + extent[3], row)


@njit
def store_block(block, channel, out):  # type: ignore[no-untyped-def]
    """Copy block (K, BLOCK) to channels of out (C, K)."""
    for c in range(min(BLOCK, out.shape[0] - channel)):
        for k in range(out.shape[1]):
            out[channel + c, k] = block[k, c]


@njit
def pool_region(block, extent, rows, columns, width, lowest, best, where):  # type: ignore[no-untyped-def]
    """Values and positions (bins, BLOCK) of one region, from block (cells, BLOCK), which holds `extent` of the map."""
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
    """Values and argmax (R, C, ph, pw) of integer bins, as `frcnn_lite::roi_pool` returns them."""
    given, lowest = features.dtype, max(torch.finfo(torch.float32).min, torch.finfo(features.dtype).min)
    features = features.detach().to(torch.promote_types(given, torch.float32))  # exact, and so is the way back
    values = features.new_empty(rows.shape[0], features.shape[1], rows.shape[1], columns.shape[1])
    argmax = torch.empty_like(values, dtype=torch.int16 if argmax_bits == 16 else torch.int32)
    argmax = argmax if argmax_bits else argmax.new_empty(0, 0, 0, 0)
    maps, width = features.flatten(2).numpy(), features.shape[3]
    results = (in_large_pages(x).flatten(2).numpy() for x in (values, argmax))
    bins = images.numpy(), rows.numpy(), columns.numpy()
    arguments = maps, *bins, width, maps.dtype.type(lowest), *results
    in_threads(lambda a, b: _pool(a, b, *arguments), block_count(features))
    return values.to(given), argmax if argmax_bits else argmax.view(0)


def scatter(grad: Tensor, argmax: Tensor, images: Tensor, size: list[int], channels_last: bool = False) -> Tensor:
    """Gradient (N, C, H, W); sums run in order of region and bin, so they are the same with any number of threads."""
    given = grad.dtype
    grad = grad.detach().to(torch.promote_types(given, torch.float32)).contiguous()
    form = torch.channels_last if channels_last else torch.contiguous_format
    out = in_large_pages(torch.empty(size, dtype=grad.dtype, memory_format=form)).zero_()
    arrays = [x.numpy() for x in (grad.flatten(2), argmax.flatten(2), images, out.flatten(2))]
    in_threads(lambda a, b: _scatter(a, b, *arrays), block_count(out))
    return out.to(given)


# ---- memory and threads --------------------------------------------------------------------------------------------


def in_large_pages(result: Tensor) -> Tensor:
    """The same tensor; asks Linux to give its memory in pages of 2 MiB instead of 4 KiB.

    Touching 50 MB of fresh memory for the first time can otherwise take longer than computing what goes there.
    """
    page = 2**21
    start, end = -(-result.data_ptr() // page) * page, (result.data_ptr() + result.nbytes) // page * page
    if start < end and hasattr(mmap, "MADV_HUGEPAGE"):
        _libc().madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), mmap.MADV_HUGEPAGE)
    return result


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def block_count(features: Tensor) -> int:
    """Tasks of one call: blocks of channels of all images."""
    return features.shape[0] * -(-features.shape[1] // BLOCK)


def in_threads(work: Callable[[int, int], None], tasks: int) -> None:
    """Call `work(first, last)` for parts of range(tasks), on as many threads as torch may use, this one among them."""
    parts = max(1, min(torch.get_num_threads(), tasks))
    edges = [tasks * part // parts for part in range(parts + 1)]
    others = [_executor().submit(work, *edge) for edge in itertools.pairwise(edges[1:])]
    work(*edges[:2])
    for other in others:
        other.result()


@functools.cache
def _executor() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="frcnn_lite kernels")


if hasattr(os, "register_at_fork"):  # a forked child has the executor, but none of its threads
    os.register_at_fork(after_in_child=_executor.cache_clear)
