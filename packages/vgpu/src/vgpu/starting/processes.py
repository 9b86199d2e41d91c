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

from vgpu.base import record
from vgpu.base.patches import Patches
from vgpu.machine import devices, memory, profiles
from vgpu.starting import inherit
from vgpu.tensors import tensor


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
        data["vgpu"] = Switch(devices.total(), devices.ignored(), memory.capacity(), profiles.chosen())
        return data

    patches.set(multiprocessing.spawn, "get_preparation_data", get_preparation_data)
    reducers = ForkingPickler._extra_reducers  # type: ignore[attr-defined]
    patches.set(ForkingPickler, "_extra_reducers", {**reducers, tensor.VirtualTensor: _reduce})


def _reduce(one: tensor.VirtualTensor) -> Any:
    if one.requires_grad and not one.is_leaf:
        return reductions.reduce_tensor(one)  # refuses
    return _rebuild, (one._host, one._ordinal, one.requires_grad, getattr(one, "_is_param", False))


def _rebuild(host: torch.Tensor, ordinal: int, requires_grad: bool, is_param: bool) -> torch.Tensor:
    made = tensor.wrap(host, devices.check(ordinal)).requires_grad_(requires_grad)
    return torch.nn.Parameter(made, requires_grad) if is_param else made
