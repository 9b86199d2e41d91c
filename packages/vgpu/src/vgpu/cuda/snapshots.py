"""`torch.cuda.memory._record_memory_history`, `_snapshot` and `memory_snapshot`: their own Python over these functions.

The dictionaries are those of torch/csrc/cuda/Module.cpp, which `torch.cuda._memory_viz` and pytorch.org/memory_viz can
read. What the allocator has and no tensor holds is one more segment, so the segments of a
device add up to `memory_reserved`, and their blocks in use to `memory_allocated`.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Any

import torch

from vgpu.base.patches import Patches
from vgpu.machine import devices, history, memory, pinned, pools
from vgpu.machine.history import When

_SMALL = 1 << 20  # bytes of the largest block that comes from the allocator's pool of small ones
_CACHE = 1 << 46  # an address that no memory of the host has; device k's cache is at k times _APART above
_APART = 1 << 40
_CONTEXTS = {None: When.NEVER, "state": When.STATE, "alloc": When.ALLOC, "all": When.ALL}


def install(patches: Patches) -> None:
    """Replace what the Python of `torch.cuda.memory` asks of C++."""
    patches.on_restore(history.forget)
    functions = {
        "record_memory_history": record,
        "record_memory_history_legacy": record_legacy,
        "isHistoryEnabled": lambda: history.current() is not None,
        "memorySnapshot": snapshot,
        "setMemoryMetadata": history.say,
        "getMemoryMetadata": lambda: history.metadata,
        "attach_out_of_memory_observer": memory.observers.append,
        "hostMemoryStats": pinned.statistics,
        "resetPeakHostMemoryStats": pinned.reset_peak,
        "resetAccumulatedHostMemoryStats": pinned.reset_accumulated,
        # since torch 2.12 or later
        "allocationTraceback": traceback_of,
        "memoryMetadataSupported": lambda: True,
        "annotateMemory": annotate,
    }
    for name, function in functions.items():
        patches.set(torch._C, f"_cuda_{name}", function, may_be_missing=True)
    _install_pools(patches)
    patches.set(torch._C, "_host_emptyCache", pinned.empty_cache, may_be_missing=True)


def _install_pools(patches: Patches) -> None:
    """Replace `MemPool`, and what `use_mem_pool` calls, which Python has imported by name."""
    for module in (torch.cuda, torch.cuda.memory):
        patches.set(module, "MemPool", pools.MemPool)
    for name in ("beginAllocateToPool", "beginAllocateCurrentThreadToPool"):
        patches.set(torch.cuda.memory, f"_cuda_{name}", _begin)
    patches.set(torch.cuda.memory, "_cuda_endAllocateToPool", _end)
    patches.set(torch.cuda.memory, "_cuda_releasePool", lambda ordinal, pool: None)
    patches.on_restore(_forget_pools)


def _begin(ordinal: int, pool: pools.Pool) -> None:
    pools.begin(devices.check(ordinal), pool)
    history.note_pools()


def _end(ordinal: int, pool: pools.Pool) -> None:
    pools.end(ordinal, pool)
    history.note_pools()


def _forget_pools() -> None:
    pools.forget()
    history.note_pools()


# The parameters are those of C++, the last of which not every version has.
def record(
    enabled: str | None,
    context: str | None = "all",
    stacks: str = "all",
    max_entries: int = sys.maxsize,
    clear_history: bool = False,
    compile_context: bool = False,
    global_record_annotations: bool = False,
    skip_actions: Collection[str] = (),
    *_: Any,
) -> None:
    """Record allocations and frees with the Python frames that made them, or stop; C++ has no frames here."""
    torch.cuda.init()
    if enabled not in (None, "state", "all"):
        raise RuntimeError("expected state to be 'state', 'all', or None")
    if context not in _CONTEXTS:
        raise RuntimeError("expected context to be 'state', 'alloc', 'all', or None")
    if stacks not in ("python", "all"):
        raise RuntimeError("expected stacks to be 'python', or 'all'")
    if enabled is None:
        history.stop()
        return
    most = _possible(max_entries) if enabled == "all" else 1
    history.record(_CONTEXTS[context], most, skip_actions, clear_history)


def record_legacy(
    enabled: bool,
    record_context: bool = True,
    record_context_cpp: bool = False,
    max_entries: int = 1,
    record_context_of_events: bool = False,
    clear_history: bool = False,
    *_: Any,
) -> None:
    """`record` as it was before there were states."""
    if not enabled:
        history.stop()
        return
    when = When.ALL if record_context_of_events else When.STATE if record_context else When.NEVER
    history.record(when, _possible(max_entries), (), clear_history)


def _possible(most: int) -> int:
    """As many entries as a list can have."""
    return max(1, min(most, sys.maxsize))


def snapshot(pool: tuple | None = None) -> dict[str, Any]:
    """The segments with their blocks, and the last events of each device.

    Args:
        pool: None, or the two numbers of a memory pool, and whether events are wanted. (0, 0) is all memory, other
            numbers are those of a `MemPool`.
    """
    recording, events = history.current(), []
    for ordinal in range(devices.count()):
        found = recording.events[ordinal] if recording is not None else ()
        events.append([_with_frames(event) for event in list(found)] if pool is None or all(pool[2:]) else [])
        if recording is not None:
            recording.looked_at(ordinal, memory.held(ordinal)[0])
    return {
        "segments": _segments(None if pool is None else tuple(pool[:2])),
        "device_traces": events,
        "allocator_settings": _settings(),
        "external_annotations": [],
    }


def traceback_of(address: int) -> list[dict[str, Any]] | None:
    """The frames that asked for the block at `address`, or None."""
    for allocation, storage in memory.live():
        note = history.note_of(allocation, storage)
        if note.address == address and note.frames is not None:
            return _readable(note.frames)
    return None


def annotate(address: int, words: str) -> None:
    """Say something of the block at `address`, where somebody records it."""
    recording = history.current()
    if recording is not None:
        recording.annotated(address, words)


def _segments(pool: pools.Pool | None) -> list[dict[str, Any]]:
    """A segment for each storage, and one of what each device has left over; by device and address.

    Of a pool of the program's own, its storages alone.
    """
    everything = pool in (None, pools.DEFAULT)
    found = []
    for allocation, storage in memory.live():
        note = history.note_of(allocation, storage)
        if allocation.nbytes and (everything or note.pool == pool):
            block = _block(note.address, allocation.nbytes, note.requested, note.frames)
            found.append(_segment(allocation.ordinal, note.stream, block, note.pool))
    for ordinal in range(devices.count() if everything else 0):
        allocated, reserved = memory.held(ordinal)
        if reserved > allocated:
            block = _block(_CACHE + ordinal * _APART, reserved - allocated, 0, None)
            found.append(_segment(ordinal, 0, block))
    return sorted(found, key=lambda segment: (segment["device"], segment["address"]))


def _segment(ordinal: int, stream: int, block: dict[str, Any], pool: pools.Pool = pools.DEFAULT) -> dict[str, Any]:
    used = block["size"] if block["requested_size"] else 0
    return {
        "device": ordinal,
        "address": block["address"],
        "total_size": block["size"],
        "allocated_size": used,
        "active_size": used,
        "requested_size": block["requested_size"],
        "stream": stream,
        "segment_type": "small" if block["size"] <= _SMALL else "large",
        "segment_pool_id": pool,
        "is_expandable": False,
        "frames": block["frames"],
        "blocks": [block],
    }


def _block(address: int, size: int, requested: int, frames: history.Frames | None) -> dict[str, Any]:
    state = "active_allocated" if requested else "inactive"
    return {
        "address": address,
        "size": size,
        "requested_size": requested,
        "state": state,
        "frames": _readable(frames),
    }


def _with_frames(event: dict[str, Any]) -> dict[str, Any]:
    return {**event, "frames": _readable(event["frames"])}


def _readable(frames: history.Frames | None) -> list[dict[str, Any]]:
    return [{"name": c.co_name, "filename": c.co_filename, "line": line or 0} for c, line in frames or ()]


def _settings() -> dict[str, Any]:
    """The allocator's settings as a process has them that chose none."""
    return {
        "PYTORCH_CUDA_ALLOC_CONF": "",
        "max_split_size": -1,
        "garbage_collection_threshold": 0.0,
        "expandable_segments": False,
        "pinned_num_register_threads": 1,
        "release_lock_on_cudamalloc": False,
        "pinned_use_cuda_host_register": False,
        "roundup_power2_divisions": {},
        "graph_capture_record_stream_reuse": False,
    }
