"""Generators of random numbers where ranks are threads: each rank has those of the CPU and of every GPU for itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from vgpu.base.patches import Patches
from vgpu.machine import devices, rng

_FORWARDED = (
    *("clone_state", "get_offset", "get_state", "graphsafe_get_state", "graphsafe_set_state", "initial_seed"),
    *("manual_seed", "seed", "set_offset", "set_state"),
)


class _DefaultGenerator(rng.CPUGenerator):
    """In the place of `torch.default_generator`: what is called on it reaches the generator of the calling rank."""


def _forward(name: str) -> Callable:
    def forwarded(self: Any, *args: Any) -> Any:
        return getattr(rng.of_cpu(), name)(*args)

    return forwarded


for _name in _FORWARDED:
    setattr(_DefaultGenerator, _name, _forward(_name))


class _OfDevices(Sequence):
    """In the place of `torch.cuda.default_generators`."""

    def __len__(self) -> int:
        return devices.total()

    def __getitem__(self, place: Any) -> Any:
        return tuple(rng.generator(k) for k in range(devices.total()))[place]


def install(patches: Patches) -> None:
    """Replace the generators that programs find by name."""
    default = _DefaultGenerator()
    for module in (torch, torch.random):
        patches.set(module, "default_generator", default)
    patches.set(torch.cuda, "default_generators", _OfDevices())
    rng.stands_for_default(default)
    patches.on_restore(lambda: rng.stands_for_default(None))
