"""How many bytes each virtual GPU holds: every storage once, until the last tensor over it is gone."""

from __future__ import annotations

import threading
import weakref

import torch

BLOCK = 512  # CUDA's allocator rounds every request up to this
TOTAL = 16 << 30

# Re-entrant: a garbage collection inside the lock may free a storage, whose callback takes the lock again.
_lock = threading.RLock()
_live: dict[int, _Allocation] = {}
_allocated: dict[int, int] = {}
_peak: dict[int, int] = {}


class _Allocation(weakref.ref):
    """A reference to a storage that knows what to give back when the storage dies."""

    __slots__ = ("key", "nbytes", "ordinal")
    key: int
    nbytes: int
    ordinal: int


def _free(allocation: _Allocation) -> None:
    with _lock:
        if _live.get(allocation.key) is allocation:
            del _live[allocation.key]
        _allocated[allocation.ordinal] -= allocation.nbytes


def track(storage: torch.UntypedStorage, ordinal: int) -> None:
    """Count a storage on device `ordinal`, once."""
    key = storage._cdata
    known = _live.get(key)
    if known is not None:
        if known.nbytes == _rounded(storage.nbytes()):
            return
        _free(known)
    allocation = _Allocation(storage, _free)
    allocation.key, allocation.ordinal, allocation.nbytes = key, ordinal, _rounded(storage.nbytes())
    with _lock:
        _live[key] = allocation
        _allocated[ordinal] = total = _allocated.get(ordinal, 0) + allocation.nbytes
        if total > _peak.get(ordinal, 0):
            _peak[ordinal] = total


def ordinal_of(storage: torch.UntypedStorage) -> int | None:
    """The virtual GPU a storage lies on, or None."""
    allocation = _live.get(storage._cdata)
    return allocation.ordinal if allocation is not None else None


def _rounded(nbytes: int) -> int:
    return -(-nbytes // BLOCK) * BLOCK


def allocated(ordinal: int) -> int:
    """Bytes held by living tensors of one device."""
    return _allocated.get(ordinal, 0)


def peak(ordinal: int) -> int:
    """Most bytes held at one time since the last `reset_peak`."""
    return max(_peak.get(ordinal, 0), allocated(ordinal))


def reset_peak(ordinal: int) -> None:
    """Start the peak again from what is held now."""
    _peak[ordinal] = allocated(ordinal)


def statistics(ordinal: int) -> dict:
    """The nested dictionary of `torch.cuda.memory_stats`; figures that mean nothing here are zero."""
    held, most = allocated(ordinal), peak(ordinal)
    count = sum(1 for a in list(_live.values()) if a.ordinal == ordinal)
    figures = {
        "allocated_bytes": (held, most),
        "active_bytes": (held, most),
        "requested_bytes": (held, most),
        "reserved_bytes": (most, most),
        "inactive_split_bytes": (0, 0),
        "allocation": (count, count),
        "active": (count, count),
        "segment": (count, count),
        "inactive_split": (0, 0),
    }
    pools = ("all", "small_pool", "large_pool")
    nested: dict = {name: {pool: _stat(*figure) for pool in pools} for name, figure in figures.items()}
    nested |= {name: _stat(0, 0) for name in ("oversize_allocations", "oversize_segments")}
    counts = "num_alloc_retries num_ooms num_sync_all_streams num_device_alloc num_device_free max_split_size"
    return nested | dict.fromkeys(counts.split(), 0)


def _stat(now: int, top: int) -> dict[str, int]:
    return {"current": now, "peak": top, "allocated": top, "freed": top - now}
