"""How many bytes each virtual GPU holds: every storage once, until the last tensor over it is gone.

The caching allocator above it is modelled by one figure, the bytes `reserved`: it grows when tensors need more and
shrinks to what they hold in `empty_cache`. Every byte is one of the host's, so a device has a share of them where
nobody says how much it has, and what the host can no longer give is CUDA's error, too, instead of the system's end.
"""

from __future__ import annotations

import dataclasses
import gc
import re
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import torch

from vgpu.base import errors, record
from vgpu.machine import host

BLOCK = 512  # CUDA's allocator rounds every request up to this
SEGMENT = 2 << 20  # and asks the driver for multiples of this
MOST, LEAST = 16 << 30, 64 << 20  # bytes of a device that nobody has chosen
SHARE = 0.75  # of the host's memory, for all devices together
STEP = 256 << 20  # the host is asked again when the devices have grown by this much
MARGIN = 64 << 20  # and must keep this for everything else


@dataclasses.dataclass(eq=False)
class _Device:
    """The figures of one device, in bytes; the counts are of storages."""

    allocated: int = 0
    peak: int = 0
    reserved: int = 0
    reserved_peak: int = 0
    count: int = 0
    ever: int = 0  # all that was allocated since `base` was held
    base: int = 0
    grown: int = 0  # how often the allocator asked the driver for more
    emptied: int = 0
    out_of_memory: int = 0
    fraction: float = 1.0


class Allocation(weakref.ref):
    """A reference to a storage that knows what to give back when the storage dies."""

    __slots__ = ("key", "nbytes", "note", "ordinal")
    key: int
    nbytes: int
    note: Any  # history.py's, and missing where nothing was recorded
    ordinal: int


# Re-entrant: a garbage collection inside the lock may free a storage, whose callback takes the lock again.
_lock = threading.RLock()
_live: dict[int, Allocation] = {}
_devices: defaultdict[int, _Device] = defaultdict(_Device)
_capacity = MOST
_granted = 0  # bytes of all devices for which the host was asked
observers: list[Callable[[int, int, int, int], None]] = []  # called with what was asked for and what is left
witness: Any = None  # of who looks for races, told of every storage as `recorder` is
recorder: Any = None  # history.py's, which is told of every storage, while a program records its memory


def configure(capacity: int | None, gpus: int) -> None:
    """Give each of `gpus` devices `capacity` bytes, by default a share of the host's."""
    global _capacity
    _capacity = share(gpus) if capacity is None else capacity
    for device in _devices.values():
        device.fraction = 1.0
    empty_cache()


def share(gpus: int) -> int:
    """Bytes of each of `gpus` devices that together leave the host enough for itself."""
    part = int(host.total() * SHARE) // max(1, gpus) // LEAST * LEAST
    return min(MOST, max(LEAST, part))


def fresh_memory() -> None:
    """Let every memory counter start from zero, whatever tensors still hold; what they free later is not counted.

    For tests. A program that fails in the middle of autograd leaves tensors in a cycle of nodes that PyTorch never
    frees, and they would count against the test that comes next.
    """
    gc.collect()
    with _lock:
        _live.clear()
        _devices.clear()


def marks() -> dict[int, tuple[object, int]]:
    """How far the counting of each device has come, for `used_since`."""
    return {ordinal: (device, device.ever) for ordinal, device in list(_devices.items())}


def used_since(before: dict[int, tuple[object, int]]) -> bool:
    """Whether anything was allocated on a device since `marks()` gave `before`."""
    return any(
        device.ever and before.get(ordinal, (None, 0)) != (device, device.ever)
        for ordinal, device in list(_devices.items())
    )


def capacity() -> int:
    """Bytes of memory of every device."""
    return _capacity


def _free(allocation: Allocation) -> None:
    with _lock:
        if _live.get(allocation.key) is not allocation:
            return
        del _live[allocation.key]
        device = _devices[allocation.ordinal]
        device.allocated -= allocation.nbytes
        device.count -= 1
        if recorder is not None:
            recorder.freed(allocation)
        if witness is not None:
            witness.freed(allocation)


def track(storage: torch.UntypedStorage, ordinal: int) -> None:
    """Count a storage on device `ordinal`, once.

    Raises:
        torch.OutOfMemoryError: if the device has no room for it.
    """
    # Every result of every operator passes here: calls are spared where they would be the larger part.
    key = storage._cdata
    known = _live.get(key)
    nbytes = -(-storage.nbytes() // BLOCK) * BLOCK
    if known is not None:
        if known.nbytes == nbytes:
            return
        _free(known)
    with _lock:
        device = _devices[ordinal]
        if device.allocated + nbytes > device.reserved:
            _reserve(device, ordinal, nbytes)
        allocation = Allocation(storage, _free)
        allocation.key, allocation.ordinal, allocation.nbytes = key, ordinal, nbytes
        _live[key] = allocation
        device.allocated += nbytes  # not the sum of above: a collection since may have freed some
        device.count += 1
        device.ever += nbytes
        device.peak = max(device.peak, device.allocated)
        if recorder is not None:
            recorder.allocated(allocation, storage)
        if witness is not None:
            witness.allocated(allocation, storage)


def borrow(storage: torch.UntypedStorage, ordinal: int) -> None:
    """Know a storage as one of device `ordinal` whose memory is counted elsewhere."""
    allocation = Allocation(storage, _free)
    allocation.key, allocation.ordinal, allocation.nbytes = storage._cdata, ordinal, 0
    with _lock:
        _devices[ordinal].count += 1
        _live[allocation.key] = allocation


def live() -> Iterator[tuple[Allocation, torch.UntypedStorage]]:
    """The storages that are counted now."""
    for allocation in list(_live.values()):
        storage = allocation()
        if storage is not None:
            yield allocation, storage


def held(ordinal: int) -> tuple[int, int]:
    """Bytes of a device that storages hold, and that its allocator has."""
    return _devices[ordinal].allocated, _devices[ordinal].reserved


def _reserve(device: _Device, ordinal: int, nbytes: int) -> None:
    """Let the allocator own enough for another `nbytes`, in whole segments where there is room for them."""
    needed = device.allocated + nbytes
    if needed <= device.reserved:
        return
    limit = int(_capacity * device.fraction)
    most = min(limit, _capacity - BLOCK)  # the driver keeps some for itself: on no GPU do two halves fit
    if needed > most:
        _refused(device, ordinal, nbytes)
        raise errors.out_of_memory(ordinal, nbytes, _capacity, limit, device.allocated, device.reserved)
    _ask_host(ordinal, nbytes)
    device.reserved = min(most, -(-needed // SEGMENT) * SEGMENT)
    device.reserved_peak = max(device.reserved_peak, device.reserved)
    device.grown += 1
    record.write(record.USED)


def _refused(device: _Device, ordinal: int, nbytes: int) -> None:
    """Count a request that is about to fail, and tell who wants to know."""
    device.out_of_memory += 1
    free, total = free_and_total(ordinal)
    if recorder is not None:
        recorder.out_of_memory(ordinal, nbytes, free)
    for observer in list(observers):
        observer(ordinal, nbytes, total, free)


def _ask_host(ordinal: int, nbytes: int) -> None:
    """Raise CUDA's error for `nbytes` more if the host has not got them."""
    global _granted
    held = nbytes + sum(device.reserved for device in list(_devices.values()))
    if held <= _granted:
        return
    room = host.left(held) - MARGIN
    if room < 0:
        raise _host_is_full(ordinal, nbytes)
    _granted = held + min(STEP, room // 2)


def _host_is_full(ordinal: int, nbytes: int) -> RuntimeError:
    device = _devices[ordinal]
    _refused(device, ordinal, nbytes)
    error = errors.out_of_memory(ordinal, nbytes, _capacity, _capacity, device.allocated, device.reserved)
    return type(error)(f"{error}\nvirtual GPUs: it is the host whose memory ({host.total() >> 20} MiB) is used up")


def raise_if_too_large(error: Exception, ordinal: int) -> None:
    """Raise CUDA's error in the place of the host's, where the device or the host has not got so much."""
    asked = re.search(r"you tried to allocate (\d+) bytes", str(error))
    if asked:
        try:
            _reserve(_devices[ordinal], ordinal, int(asked[1]))
        except RuntimeError as full:
            raise full from None
        raise _host_is_full(ordinal, int(asked[1])) from None


def ordinal_of(storage: torch.UntypedStorage) -> int | None:
    """The virtual GPU a storage lies on, or None."""
    allocation = _live.get(storage._cdata)
    return allocation.ordinal if allocation is not None else None


def free_and_total(ordinal: int) -> tuple[int, int]:
    """What `torch.cuda.mem_get_info` answers: bytes the allocator has not taken, and all bytes."""
    return _capacity - _devices[ordinal].reserved, _capacity


def set_fraction(ordinal: int, fraction: float) -> None:
    """Allow this process a part of the device's memory, 0 to 1."""
    _devices[ordinal].fraction = fraction


def fraction(ordinal: int) -> float:
    """The part of the device's memory this process may use."""
    return _devices[ordinal].fraction


def empty_cache() -> None:
    """Give the driver back what no tensor holds."""
    with _lock:
        for device in _devices.values():
            device.emptied += 1
            device.reserved = min(_capacity - BLOCK, -(-device.allocated // SEGMENT) * SEGMENT)


def reset_peak(ordinal: int) -> None:
    """Start the peaks again from what is held now."""
    device = _devices[ordinal]
    device.peak = device.allocated
    device.reserved_peak = device.reserved


def reset_accumulated(ordinal: int) -> None:
    """Count what is allocated and freed from zero again."""
    device = _devices[ordinal]
    device.ever = 0
    device.base = device.allocated
    device.out_of_memory = 0


def statistics(ordinal: int) -> dict:
    """The nested dictionary of `torch.cuda.memory_stats`; figures that mean nothing here are zero."""
    device = _devices[ordinal]
    held = _figures(device.allocated, device.peak, device.ever, device.base + device.ever - device.allocated)
    reserved = _figures(
        device.reserved, device.reserved_peak, device.reserved_peak, device.reserved_peak - device.reserved
    )
    storages = _figures(device.count, device.count, device.count, 0)
    nothing = _figures(0, 0, 0, 0)
    return {
        # bytes
        "allocated_bytes": _by_pool(held),
        "active_bytes": _by_pool(held),
        "requested_bytes": _by_pool(held),
        "reserved_bytes": _by_pool(reserved),
        "inactive_split_bytes": _by_pool(nothing),
        # numbers of storages, each of which is taken for one allocation, block and segment
        "allocation": _by_pool(storages),
        "active": _by_pool(storages),
        "segment": _by_pool(storages),
        "inactive_split": _by_pool(nothing),
        "oversize_allocations": nothing,
        "oversize_segments": nothing,
        # events
        "num_ooms": device.out_of_memory,
        "num_device_alloc": device.grown,
        "num_device_free": device.emptied,
        "num_sync_all_streams": device.emptied,
        "num_alloc_retries": 0,
        # a setting: blocks of every size may be split
        "max_split_size": -1,
    }


def _figures(current: int, peak: int, allocated: int, freed: int) -> dict[str, int]:
    """One figure of the allocator: what it is now, at most, and the sums of what was added and taken away."""
    return {"current": current, "peak": peak, "allocated": allocated, "freed": freed}


def _by_pool(figures: dict[str, int]) -> dict[str, dict[str, int]]:
    """The allocator's pools are not simulated: each says what all of them hold."""
    return {pool: dict(figures) for pool in ("all", "small_pool", "large_pool")}


def parse_bytes(memory: int | str | None) -> int | None:
    """Bytes of `memory`: a number, or text such as "64MiB" or "64M", in 1024s, or "64MB", in 1000s; None stays None.

    Raises:
        TypeError, ValueError: if it is not an amount of at least one block of the allocator.
    """
    if memory is None:
        return None
    if isinstance(memory, bool) or not isinstance(memory, (int, str)):
        raise TypeError(f"memory must be a number of bytes or text such as '64MiB', got {memory!r}")
    found = re.fullmatch(r"(-?\d+\.?\d*)\s*(b|([kmgt])(i?b)?)?", str(memory).strip().lower())
    if found is None:
        raise ValueError(f"memory must be a number of bytes or text such as '64MiB', got {memory!r}")
    step = 1000 if found[4] == "b" else 1024
    nbytes = int(float(found[1]) * step ** ("kmgt".find(found[3] or "-") + 1))
    if nbytes < BLOCK:
        raise ValueError(f"memory must be at least {BLOCK} bytes, got {memory!r}")
    return nbytes
