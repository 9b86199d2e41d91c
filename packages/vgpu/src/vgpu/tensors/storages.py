"""Storages of virtual tensors say that they are on `cuda:k`: `x.untyped_storage()`, `x.storage()` and new ones.

To C++ a storage is memory of the CPU, and the host tensor beneath a virtual one has the same; `as_hosts` lets PyTorch's
Python see it so for a moment.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch import UntypedStorage

from vgpu.base.patches import Patches
from vgpu.machine import devices, memory

# What C++ does beneath the attributes that are replaced.
_base: Any = torch._C.StorageBase  # type: ignore[attr-defined]
_device = _base.device.__get__
_new = _base.__new__
_is_shared = UntypedStorage.is_shared
_resize = _base.resize_


class _Seen(threading.local):
    as_hosts = False


_seen = _Seen()


def install(patches: Patches) -> None:
    """Replace what storages say of their device, how they are made there, and how they are moved."""
    patches.set(UntypedStorage, "device", property(device_of))
    patches.set(UntypedStorage, "__new__", new)
    patches.set(UntypedStorage, "cuda", cuda)
    patches.set(UntypedStorage, "is_shared", lambda storage: _is_on_gpu(storage) or _is_shared(storage))
    patches.set(UntypedStorage, "resize_", resize_)


@contextlib.contextmanager
def as_hosts() -> Iterator[None]:
    """Let storages say in this block what they are to C++: memory of the CPU."""
    before, _seen.as_hosts = _seen.as_hosts, True
    try:
        yield
    finally:
        _seen.as_hosts = before


def device_of(storage: UntypedStorage) -> torch.device:
    """`storage.device`."""
    ordinal = None if _seen.as_hosts else memory.ordinal_of(storage)
    return _device(storage) if ordinal is None else devices.PUBLIC[ordinal]


def _is_on_gpu(storage: UntypedStorage) -> bool:
    return device_of(storage).type == "cuda"


@functools.wraps(_new)
def new(cls: type, *args: Any, device: Any = None, **kwargs: Any) -> UntypedStorage:
    """`UntypedStorage(nbytes, device="cuda:1")`, and every other form of it."""
    ordinal = devices.ordinal_of(device)
    if ordinal is None:
        return _new(cls, *args, **kwargs) if device is None else _new(cls, *args, device=device, **kwargs)
    made = _new(cls, *args, **kwargs)
    memory.track(made, ordinal)
    return made


def cuda(self: UntypedStorage, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
    """`storage.cuda(device)`: a copy on that virtual GPU; the storage itself, if it is there already."""
    ordinal = devices.check(devices.current()) if device is None else devices.ordinal_of(device)
    if ordinal is None:
        raise RuntimeError(f"Invalid device, must be cuda device but got {device}")
    if memory.ordinal_of(self) == ordinal:
        return self
    return new(UntypedStorage, self.nbytes(), device=devices.PUBLIC[ordinal]).copy_(self)


def resize_(self: UntypedStorage, size: int) -> Any:
    """`storage.resize_(size)`, which no operator sees: FSDP gives memory back and takes it so."""
    ordinal, before = memory.ordinal_of(self), self.nbytes()
    _resize(self, size)
    if ordinal is not None:
        try:
            memory.track(self, ordinal)
        except torch.OutOfMemoryError:
            _resize(self, before)
            memory.track(self, ordinal)
            raise
    return self
