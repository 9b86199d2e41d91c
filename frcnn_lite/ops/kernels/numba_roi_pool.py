"""RoI max pooling compiled for the CPU by numba.

A block of channels of one image is copied with the channels innermost, small enough to stay in the cache while every
region reads it: a bin's edges then serve the whole block, and the comparison runs over consecutive memory. Blocks share
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
STRIP = 16  # cells copied at a time: one cache line of each channel
njit = numba.njit(nogil=True, cache=True, error_model="numpy")


@njit
def load_block(features, channel, first, last, block):  # type: ignore[no-untyped-def]
    """Copy cells first to last of some channels of (C, cells) to block (cells, BLOCK)."""
    for start in range(first, last, STRIP):
        for c in range(min(BLOCK, features.shape[0] - channel)):
            for p in range(start, min(start + STRIP, last)):
                block[p, c] = features[channel + c, p]


@njit
def load_image(features, channel, image, images, extents, width, block):  # type: ignore[no-untyped-def]
    """Copy what the regions of one image read: each one's rectangle, or the whole map where that is less."""
    cells = 0
    for r in range(images.size):
        if images[r] == image:
            cells += (extents[r, 1] - extents[r, 0]) * (extents[r, 3] - extents[r, 2])
    if cells >= features.shape[2]:
        load_block(features[image], channel, 0, features.shape[2], block)
        return
    for r in range(images.size):
        if images[r] == image:
            for row in range(extents[r, 0] * width, extents[r, 1] * width, width):
                load_block(features[image], channel, row + extents[r, 2], row + extents[r, 3], block)


@njit
def store_block(block, channel, out):  # type: ignore[no-untyped-def]
    """Copy block (K, BLOCK) to channels of out (C, K)."""
    for c in range(min(BLOCK, out.shape[0] - channel)):
        for k in range(out.shape[1]):
            out[channel + c, k] = block[k, c]


@njit
def pool_region(block, rows, columns, width, lowest, best, where):  # type: ignore[no-untyped-def]
    """Values and positions (bins, BLOCK) of one region, from block (HW, BLOCK)."""
    k = 0
    for i in range(rows.shape[0]):
        for j in range(columns.shape[0]):
            top, bottom, left, right = rows[i, 0], rows[i, 1], columns[j, 0], columns[j, 1]
            filled = top < bottom and left < right
            for c in range(BLOCK):
                best[k, c] = lowest if filled else 0
                where[k, c] = -1
            for y in range(top, bottom):
                for p in range(y * width + left, y * width + right):
                    position = np.int32(p)
                    # Two selects instead of one branch: this form the compiler turns into vector code.
                    for c in range(BLOCK):
                        larger = block[p, c] > best[k, c]
                        where[k, c] = position if larger else where[k, c]
                        best[k, c] = block[p, c] if larger else best[k, c]
            k += 1


@njit
def _pool(  # type: ignore[no-untyped-def]
    first, last, features, images, rows, columns, extents, width, lowest, values, argmax
):
    """Tasks first to last; task t is block t % blocks of image t // blocks."""
    blocks = (features.shape[1] + BLOCK - 1) // BLOCK
    block = np.empty((features.shape[2], BLOCK), features.dtype)
    best = np.empty((values.shape[2], BLOCK), features.dtype)
    where = np.empty((values.shape[2], BLOCK), np.int32)
    for task in range(first, last):
        image, channel = task // blocks, task % blocks * BLOCK
        load_image(features, channel, image, images, extents, width, block)
        for r in range(images.size):
            if images[r] == image:
                pool_region(block, rows[r], columns[r], width, lowest, best, where)
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
    extents = torch.stack([rows[:, 0, 0], rows[:, -1, 1], columns[:, 0, 0], columns[:, -1, 1]], dim=1)
    bins = images.numpy(), rows.numpy(), columns.numpy(), extents.numpy()
    results = (in_large_pages(x).flatten(2).numpy() for x in (values, argmax))
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
