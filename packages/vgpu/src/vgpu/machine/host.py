"""The memory of the machine that computes for the virtual GPUs: all of it, and how much is left.

A container's limit counts where it is lower, as it is in most CI. Linux says everything, other systems only the total.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from pathlib import Path

_PROC = Path("/proc")
_CGROUP = Path("/sys/fs/cgroup")
_UNLIMITED = 1 << 60  # what version 1 of cgroups says where there is no limit is larger


@functools.cache
def total() -> int:
    """Bytes of memory that this process could use if it were alone."""
    return min(_physical(), _limit() or _UNLIMITED)


def left(held: int) -> int:
    """How many more bytes there is room for, when `held` bytes have been handed out; negative where it is too late.

    The host gives memory when it is first written, so what was handed out and not written yet is still counted as
    free by the system: the larger part of `held` that cannot lie in this process's pages is taken off.
    """
    found = _available()
    return total() - held if found is None else found - max(0, held - _resident())


def _physical() -> int:
    if sys.platform == "win32":
        return _windows()
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _windows() -> int:
    """Total memory, from GlobalMemoryStatusEx."""

    class Status(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ulong), ("load", ctypes.c_ulong), ("figures", ctypes.c_ulonglong * 7))

    status = Status(length=ctypes.sizeof(Status))
    ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # type: ignore[attr-defined]
    return int(status.figures[0])


def _limit() -> int | None:
    """What the container allows: cgroups of version 2, then 1."""
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        found = _number(_CGROUP / name)
        if found is not None and found < _UNLIMITED:
            return found
    return None


def _available() -> int | None:
    """Bytes the system could give now, or None where it does not say."""
    try:
        lines = (_PROC / "meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return None
    limit, used = _limit(), _number(_CGROUP / "memory.current") or _number(_CGROUP / "memory/memory.usage_in_bytes")
    if limit is None or used is None:
        return free
    return min(free, limit - used + _reclaimable())


def _reclaimable() -> int:
    """Bytes of files that a container counts as used and gives back on demand."""
    for name in ("memory.stat", "memory/memory.stat"):
        try:
            lines = (_CGROUP / name).read_text().splitlines()
        except OSError:
            continue
        return next((int(line.split()[1]) for line in lines if line.startswith("inactive_file ")), 0)
    return 0


def _resident() -> int:
    """Bytes of this process that lie in memory."""
    return int((_PROC / "self" / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
