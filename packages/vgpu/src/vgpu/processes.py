"""Spawned processes: a child of a virtual program is virtual, too, before its first import.

`multiprocessing` sends each child a small dictionary of preparation data and unpickles it before anything else. An
entry of it here is an object whose unpickling switches virtual GPUs on.
"""

from __future__ import annotations

import multiprocessing.spawn
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch.multiprocessing import reductions

from vgpu import devices, memory, tensor
from vgpu.patches import Patches


class _Switch:
    """Pickles as the call that enables virtual GPUs in the process that unpickles it."""

    def __init__(self, *machine: Any) -> None:
        self.machine = machine

    def __reduce__(self) -> Any:
        return _enable_in_child, self.machine


def _enable_in_child(gpus: int, ignored: str | None, capacity: int) -> None:
    from vgpu import switch  # here, for switch imports this module

    switch.start(gpus, ignored, capacity)


def install(patches: Patches) -> None:
    """Send the switch along with every spawned process, and virtual tensors by their shared memory."""
    original = multiprocessing.spawn.get_preparation_data

    def get_preparation_data(name: str) -> dict:
        data = original(name)
        data["vgpu"] = _Switch(devices.total(), devices.ignored(), memory.capacity())
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
