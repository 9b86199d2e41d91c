"""What the kernels for numba share: blocks of channels, threads, and a word to who waits for the compiler.

A block of channels of one image is copied with the channels innermost, small enough to stay in the cache while every
region reads it: a bin's edges then serve the whole block, and the arithmetic runs over consecutive memory. Where the
regions together read less than the map, as few or small ones do, each one's rectangle is copied instead. Blocks share
nothing, so threads take them without locks; the kernels release the interpreter lock, and may be entered by any number
of threads at once. (numba's own `parallel=True` may not: under its default threading layer it aborts the process.)
"""

import itertools
import logging
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import torch
from numba.core.event import Event, Listener, register
from torch import Tensor

BLOCK = 64  # channels; a constant, so the loops over them become vector code without a remainder
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
def store_block(block, channel, out):  # type: ignore[no-untyped-def]
    """Copy block (K, BLOCK) to channels of out (C, K)."""
    for c in range(min(BLOCK, out.shape[0] - channel)):
        for k in range(out.shape[1]):
            out[channel + c, k] = block[k, c]


def block_count(features: Tensor) -> int:
    """Tasks of one call: blocks of channels of all images."""
    return features.shape[0] * -(-features.shape[1] // BLOCK)


def in_threads(work: Callable[[int, int], None], tasks: int) -> None:
    """Call `work(first, last)` for parts of range(tasks), on as many threads as torch may use."""
    parts = max(1, min(torch.get_num_threads(), tasks))
    edges = [tasks * part // parts for part in range(parts + 1)]
    with ThreadPoolExecutor(parts) as threads:  # which starts a thread for each part that is submitted, and no others
        others = [threads.submit(work, *edge) for edge in itertools.pairwise(edges[1:])]
        work(*edges[:2])
        for other in others:
            other.result()


class _Announcement(Listener):
    """Says, once for each file of kernels, that numba compiles it: a first step that takes seconds looks like a hang.

    numba reports only what it does not find in its cache on disk. `FRCNN_LITE_QUIET=1` keeps the line back: some
    programs compare what others print.
    """

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def on_start(self, event: Event) -> None:
        name = self.names.pop(event.data["dispatcher"].py_func.__module__, None)
        if name and not os.environ.get("FRCNN_LITE_QUIET"):
            message = "frcnn_lite: compiling %s for this processor, once (about %d s)"
            logging.getLogger("frcnn_lite").warning(message, name, SECONDS)

    def on_end(self, event: Event) -> None:
        """Nothing to say: the step goes on."""


SECONDS = 4  # that numba takes for one file of kernels, on a core of a laptop
_announcement = _Announcement()
register("numba:compile", _announcement)


def announce(module: str, name: str) -> None:
    """When the kernels of the file `module` have to be compiled, say so and call them `name`."""
    _announcement.names[module] = name
