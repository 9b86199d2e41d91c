"""Waiting for a device: `torch.cuda.set_sync_debug_mode` makes it heard, and an error that came late is met there."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from vgpu.base import errors
from vgpu.machine import captures, contexts

_SAID = "called a synchronizing CUDA operation"
_mode = 0  # of `set_sync_debug_mode`: 0 says nothing, 1 warns, 2 raises


class _Thread(threading.local):
    unheard = False


_thread = _Thread()


def mode() -> int:
    """What `torch.cuda.get_sync_debug_mode` answers."""
    return _mode


def set_mode(mode: int) -> None:
    """Let those who wait for a device be warned (1) or refused (2), or not (0)."""
    global _mode
    errors.note(
        "Synchronization debug mode is a prototype feature and does not yet detect all synchronizing operations",
        UserWarning,
    )
    if mode not in (0, 1, 2):
        raise RuntimeError("invalid value of debug_mode, expected one of 0,1,2")
    _mode = mode
    contexts.watch(_SAID, mode > 0)


def reset() -> None:
    """Say nothing again, as a new process does."""
    global _mode
    _mode = 0
    contexts.watch(_SAID, False)


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """Inside the block nobody waits: the CPU reads something there that a GPU does not."""
    before, _thread.unheard = _thread.unheard, True
    try:
        yield
    finally:
        _thread.unheard = before


def wait(ordinal: int) -> None:
    """The host waits for the stream of a device.

    Raises:
        RuntimeError: if the debug mode refuses that.
        torch.AcceleratorError: if a kernel has failed in the meantime, or this thread captures a graph.
    """
    if _thread.unheard:
        return
    captures.forbid_waiting()
    if _mode == 2:
        raise RuntimeError(_SAID)
    if _mode == 1:
        errors.warn(f"{_SAID} (Triggered internally at /pytorch/c10/cuda/CUDAFunctions.cpp.)")
    contexts.reach(ordinal)
