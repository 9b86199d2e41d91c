"""Pinned memory of the host: which storages say that they lie there, and the figures of the allocator that has it.

Like CUDA's, it rounds every request up to a power of two, and keeps what is freed for the next request of that size.
"""

from __future__ import annotations

import dataclasses
import threading
import weakref
from collections import Counter
from typing import Any

import torch


@dataclasses.dataclass
class _Figure:
    """One figure of the allocator: what it is now, at most, and the sums of what was added and taken away."""

    current: int = 0
    peak: int = 0
    allocated: int = 0
    freed: int = 0

    def add(self, amount: int) -> None:
        """Let the figure rise."""
        self.current += amount
        self.allocated += amount
        self.peak = max(self.peak, self.current)

    def take(self, amount: int) -> None:
        """Let the figure fall."""
        self.current -= amount
        self.freed += amount


class _Allocator:
    """The blocks of this process, and how many of each size are free."""

    def __init__(self) -> None:
        self.allocations, self.allocated_bytes, self.active_requests, self.active_bytes = (_Figure() for _ in range(4))
        self.cached: Counter[int] = Counter()

    def figures(self) -> dict[str, _Figure]:
        """The figures by PyTorch's names."""
        return {name: value for name, value in vars(self).items() if isinstance(value, _Figure)}

    def take(self, size: int) -> None:
        """Hand out a block."""
        if self.cached[size]:
            self.cached[size] -= 1
        else:
            self.allocations.add(1)
            self.allocated_bytes.add(size)
        self.active_requests.add(1)
        self.active_bytes.add(size)

    def give_back(self, size: int) -> None:
        """Keep a block for the next request of its size."""
        self.cached[size] += 1
        self.active_requests.take(1)
        self.active_bytes.take(size)

    def empty(self) -> None:
        """Give the host back what nobody uses."""
        for size, count in self.cached.items():
            self.allocations.take(count)
            self.allocated_bytes.take(size * count)
        self.cached.clear()


class _Pinned(weakref.ref):
    """A reference to a storage that knows its block."""

    __slots__ = ("key", "size")
    key: int
    size: int


# Re-entrant: a garbage collection inside the lock may free a storage, whose callback takes the lock again.
_lock = threading.RLock()
_live: dict[int, _Pinned] = {}
_allocator = _Allocator()


def pin(tensor: torch.Tensor) -> torch.Tensor:
    """Have `tensor` say that it lies in pinned memory of the host; return it."""
    storage = tensor.untyped_storage()
    if not is_pinned(storage):
        known = _Pinned(storage, _free)
        known.key, known.size = storage._cdata, 1 << max(0, storage.nbytes() - 1).bit_length()
        with _lock:
            _live[known.key] = known
            _allocator.take(known.size)
    return tensor


def is_pinned(storage: torch.UntypedStorage) -> bool:
    """True for storages that were pinned."""
    return bool(_live) and storage._cdata in _live


def _free(known: _Pinned) -> None:
    with _lock:
        if _live.get(known.key) is known:
            del _live[known.key]
            _allocator.give_back(known.size)


def empty_cache() -> None:
    """Give the host back what no tensor holds."""
    with _lock:
        _allocator.empty()


def statistics() -> dict[str, Any]:
    """The nested dictionary of `torch.cuda.host_memory_stats`; times mean nothing here and are zero."""
    figures = {name: dataclasses.asdict(figure) for name, figure in _allocator.figures().items()}
    times = dict.fromkeys(("total", "max", "min", "count", "avg"), 0)
    return {
        "num_host_alloc": _allocator.allocations.allocated,
        "num_host_free": _allocator.allocations.freed,
        **figures,
        "host_alloc_time": dict(times),
        "host_free_time": dict(times),
    }


def reset_peak() -> None:
    """Start the peaks again from what is held now."""
    for figure in _allocator.figures().values():
        figure.peak = figure.current


def reset_accumulated() -> None:
    """Count what is allocated and freed from zero again."""
    for figure in _allocator.figures().values():
        figure.allocated = figure.freed = 0
