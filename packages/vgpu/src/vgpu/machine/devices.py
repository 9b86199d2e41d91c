"""How many virtual GPUs there are, which of them are visible, and which one is current in this thread.

PyTorch's C++ sees virtual GPU k as the device `cpu:64+k`: a CPU device needs no driver, no device guard and no stream,
and an index of its own makes autograd and `.to()` keep virtual devices apart. Users see `cuda:k`. A smaller index comes
from a program that writes `torch.device(kind, rank)` and may run on CPUs, too; PyTorch takes it and forgets it.
"""

from __future__ import annotations

import os
import re
import threading
from typing import Any

import torch

from vgpu.base import errors

MAX_GPUS = 64
CPU = torch.device("cpu")
HOST = MAX_GPUS  # a tensor with this ordinal tells C++ that it lies on the CPU; set_data.py needs that for a moment
FIRST = 64  # of the indices inside; C++ has room for indices up to 127
INTERNAL = (*(torch.device("cpu", FIRST + k) for k in range(MAX_GPUS)), CPU)
_Device = torch.device  # the C++ class, whatever stands in torch.device later
PUBLIC = tuple(torch.device("cuda", k) for k in range(MAX_GPUS))


class _Machine:
    """The virtual machine: its GPUs, and how many of them this process sees."""

    total = 0
    visible: int | None = None  # fixed by the first use, as CUDA does
    ignored: str | None = None  # a CUDA_VISIBLE_DEVICES that was meant for the real GPUs
    user: int | None = None  # the process that used a device first


_OUTSIDE = (-1, -1)


class _Thread(threading.local):
    def __init__(self) -> None:
        # Asking makes a new thread take over torch.set_num_threads; else its first kernel would start a pool of its
        # own over all cores, and replicas would fight for them.
        torch.get_num_threads()

    current = 0
    # What set_device chose inside a node of a backward pass: it ends with the node, as in the engine's own threads.
    chosen: tuple[tuple[int, int], int] = (_OUTSIDE, 0)


_machine = _Machine()
_thread = _Thread()


def configure(total: int, ignored: str | None) -> None:
    """Give the machine `total` GPUs. `ignored` is a value of CUDA_VISIBLE_DEVICES to overlook."""
    _machine.total = total
    _machine.visible = None
    _machine.user = None
    _machine.ignored = ignored
    _thread.current = 0
    _thread.chosen = (_OUTSIDE, 0)


def total() -> int:
    """Number of virtual GPUs of the machine, visible or not; 0 while disabled."""
    return _machine.total


def ignored() -> str | None:
    """The value of CUDA_VISIBLE_DEVICES that is overlooked, or None."""
    return _machine.ignored


def count() -> int:
    """Number of visible GPUs. `CUDA_VISIBLE_DEVICES` counts until the first use of a device."""
    return _visible_now() if _machine.visible is None else _machine.visible


def initialise() -> None:
    """Fix the number of visible GPUs, as the first use of CUDA does."""
    if _machine.visible is None:
        _machine.visible = _visible_now()
        _machine.user = os.getpid()
    if not _machine.visible:
        raise errors.no_devices()


def in_bad_fork() -> bool:
    """True in a forked child of a process that had used a device, which CUDA does not allow."""
    return _machine.user not in (None, os.getpid())


def _after_fork() -> None:
    """In a child of a process that has used a device the next use asks `torch.cuda.init`, which refuses."""
    if in_bad_fork():
        _machine.visible = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _visible_now() -> int:
    return len(_visible())


def _visible() -> list[int]:
    """The GPUs of the machine that this process sees, in its order."""
    text = os.environ.get("CUDA_VISIBLE_DEVICES")
    if text is None or text == _machine.ignored:
        return list(range(_machine.total))
    seen: list[int] = []
    for item in text.split(","):
        if not item.strip().isdigit() or int(item) >= _machine.total:
            break  # CUDA stops reading at the first device that does not exist
        if int(item) in seen:
            return []
        seen.append(int(item))
    return seen


def physical(ordinal: int) -> int:
    """Which GPU of the machine `cuda:ordinal` of this process is: with CUDA_VISIBLE_DEVICES=3, `cuda:0` is GPU 3."""
    seen = _visible()
    return seen[ordinal] if ordinal < len(seen) else ordinal


def check(ordinal: int) -> int:
    """Return `ordinal` if the machine has that device.

    Raises:
        RuntimeError: with CUDA's words, if it has not.
    """
    if _machine.visible is None:
        torch.cuda.init()  # ends in `initialise`; C++ would call it once in a process, not once per machine
    if not 0 <= ordinal < _machine.visible:  # type: ignore[operator]
        raise errors.invalid_ordinal()
    return ordinal


def check_exists(device: torch.device | int) -> None:
    """Raise CUDA's error if the machine lacks that device, and use none: CUDA stays as uninitialised as it was."""
    ordinal = device if isinstance(device, int) else device.index
    if ordinal is not None and not 0 <= ordinal < count():
        raise errors.invalid_ordinal()


def current() -> int:
    """The current device of this thread; inside backward, that of the running node, as in the real engine."""
    if torch._C._current_graph_task_id() == -1:
        return _thread.current
    node = torch._C._current_autograd_node()
    place, ordinal = _thread.chosen
    if place == _place(node):
        return ordinal
    for meta in getattr(node, "_input_metadata", None) or ():
        if meta is not None and is_internal(meta.device):
            return meta.device.index - FIRST
    return _thread.current


def set_current(ordinal: int) -> None:
    """Make `ordinal` the current device of this thread."""
    check(ordinal)
    if torch._C._current_graph_task_id() == -1:
        _thread.current = ordinal
    else:
        _thread.chosen = _place(torch._C._current_autograd_node()), ordinal


def _place(node: Any) -> tuple[int, int]:
    return torch._C._current_graph_task_id(), -1 if node is None else node._sequence_nr()


def exchange(ordinal: int) -> int:
    """Make `ordinal` current unless it is negative; return the device that was current (-1 where nothing changed)."""
    if ordinal < 0:
        return -1
    before = current()
    set_current(ordinal)
    return before


def is_internal(device: torch.device | None) -> bool:
    """True for the `cpu:64+k` under which C++ knows a virtual GPU."""
    return device is not None and device.type == "cpu" and (device.index or 0) >= FIRST


def public(device: torch.device) -> torch.device:
    """The device that a user sees: `cuda:k` for `cpu:64+k`, any other as it is."""
    return PUBLIC[device.index - FIRST] if is_internal(device) else device


def public_text(text: str) -> str:
    """Replace the engine's internal `cpu:64+k` in a message of C++ by the `cuda:k` the user knows."""
    known = {str(inside): str(shown) for inside, shown in zip(INTERNAL, PUBLIC, strict=False)}
    return re.sub(r"\bcpu:\d+", lambda found: known.get(found[0], found[0]), text)


def ordinal_of(device: torch.device | str | int | None) -> int | None:
    """The virtual GPU a device names, public or internal; None for the CPU and other devices."""
    if device is None:
        return None
    if isinstance(device, int):
        if device < 0:
            raise RuntimeError("Device index must not be negative")
        return check(device)
    if not isinstance(device, _Device):
        device = torch.device(device)
    if device.type == "cuda":
        return check(current() if device.index is None else device.index)
    return device.index - FIRST if is_internal(device) else None


def internal(device: torch.device | str | int | None) -> torch.device | None:
    """The device as C++ may see it: `cpu:64+k` for `cuda:k`, the CPU without an index, anything else unchanged."""
    ordinal = ordinal_of(device)
    if ordinal is not None:
        return INTERNAL[ordinal]
    named = torch.device(device) if device is not None else None
    return CPU if named is not None and named.type == "cpu" else named
