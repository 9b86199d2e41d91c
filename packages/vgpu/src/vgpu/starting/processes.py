"""Processes of `multiprocessing`, spawned or from a fork server: a child of a virtual program is virtual, too.

`multiprocessing` sends each child a small dictionary of preparation data and unpickles it before its first import. An
entry of it here is an object whose unpickling switches virtual GPUs on.
"""

from __future__ import annotations

import multiprocessing.spawn
import os
import pickle
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any, ClassVar

import torch
from torch.multiprocessing import reductions

from vgpu.base import errors, record
from vgpu.base.patches import Patches
from vgpu.machine import contexts, devices, memory, profiles, rng, triton
from vgpu.starting import inherit
from vgpu.tensors import storages, tensor


class Switch:
    """Pickles as the call that enables virtual GPUs in the process that unpickles it."""

    start: ClassVar[Callable[..., None]]  # filled in by switch.py, which stands above this file

    def __init__(self, *machine: Any) -> None:
        self.machine = machine

    def __reduce__(self) -> Any:
        environment = {name: os.environ[name] for name in (record.FOLDER, record.TEST) if name in os.environ}
        return inherit.resume, (environment, pickle.dumps((type(self).start, self.machine)))


def install(patches: Patches) -> None:
    """Send the switch along with every spawned process, and virtual tensors by their shared memory."""
    original = multiprocessing.spawn.get_preparation_data

    def get_preparation_data(name: str) -> dict:
        data = original(name)
        data["vgpu"] = Switch(
            devices.total(),
            devices.ignored(),
            memory.capacity(),
            profiles.chosen(),
            contexts.chosen(),
            rng.chosen(),
            triton.chosen(),
        )
        return data

    patches.set(multiprocessing.spawn, "get_preparation_data", get_preparation_data)
    reducers = ForkingPickler._extra_reducers  # type: ignore[attr-defined]
    patches.set(ForkingPickler, "_extra_reducers", {**reducers, tensor.VirtualTensor: _reduce})


def _reduce(one: tensor.VirtualTensor) -> Any:
    if one.requires_grad and not one.is_leaf:
        return reductions.reduce_tensor(one)  # refuses
    return _rebuild, (_Sent(one._host), one._ordinal, one.requires_grad, getattr(one, "_is_param", False))


def _rebuild(host: torch.Tensor, ordinal: int, requires_grad: bool, is_param: bool) -> torch.Tensor:
    made = tensor.wrap(host, devices.check(ordinal)).requires_grad_(requires_grad)
    return torch.nn.Parameter(made, requires_grad) if is_param else made


class _Sent:
    """Pickles as the host tensor or storage that it holds, whose memory PyTorch shares as memory of the CPU."""

    def __init__(self, host: Any) -> None:
        self.host = host

    def __reduce__(self) -> Any:
        with storages.as_hosts():
            if isinstance(self.host, torch.UntypedStorage):
                rebuild, args = reductions.reduce_storage(self.host)
                return _received, (rebuild, *args)
            rebuild, args = reductions.reduce_tensor(self.host)
        return rebuild, tuple(_Typed(part) if isinstance(part, torch.TypedStorage) else part for part in args)


class _Typed:
    """Pickles as a storage with a dtype."""

    def __init__(self, storage: Any) -> None:
        self.storage = storage

    def __reduce__(self) -> Any:
        return reductions.rebuild_typed_storage, (_Sent(self.storage._untyped_storage), self.storage.dtype)


def _received(rebuild: Callable, *args: Any) -> torch.UntypedStorage:
    """The storage that was sent, or CUDA's error where the process that had it is gone."""
    try:
        return rebuild(*args)
    except (ConnectionError, FileNotFoundError) as error:
        raise errors.invalid_handle() from error
