"""Random numbers: one generator per virtual GPU, independent of the CPU's and of the other devices.

The streams are those of the CPU's Mersenne twister, not CUDA's Philox: seeds reproduce, values differ from real GPUs.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import torch

from frcnn_lite.vgpu import devices
from frcnn_lite.vgpu.patches import Patches

DEFAULT_SEED = 67280421310721  # of every default generator of PyTorch that nobody has seeded

_lock = threading.RLock()
_generators: dict[int, VirtualGenerator] = {}
_CGenerator = torch.Generator


class _GeneratorType(type(_CGenerator)):  # type: ignore[misc]
    """Makes every generator an instance of what stands in `torch.Generator`."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _CGenerator)


class VirtualGenerator(_CGenerator, metaclass=_GeneratorType):
    """`torch.Generator(device)`: a CPU generator that knows the device it was made for."""

    _ordinal: int | None

    def __new__(cls, device: Any = "cpu") -> VirtualGenerator:
        made = super().__new__(cls)
        made._ordinal = devices.ordinal_of(device)
        return made

    def __init__(self, device: Any = "cpu") -> None:
        super().__init__()

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return devices.CPU if self._ordinal is None else devices.PUBLIC[self._ordinal]


def install(patches: Patches) -> None:
    """Replace `torch.Generator`, and give each device its default generator."""
    _generators.clear()
    patches.set(torch, "Generator", VirtualGenerator)
    patches.set(torch.cuda, "default_generators", tuple(generator(k) for k in range(devices.total())))


def generator(ordinal: int) -> VirtualGenerator:
    """The default generator of one device."""
    if ordinal not in _generators:
        made = VirtualGenerator()
        made._ordinal = ordinal
        made.manual_seed(DEFAULT_SEED)
        _generators[ordinal] = made
    return _generators[ordinal]


@contextlib.contextmanager
def drawing_on(ordinal: int, kwargs: dict[str, Any], takes_generator: bool) -> Iterator[None]:
    """Let the operator called inside draw from the device's generator and leave the CPU's where it was."""
    if kwargs.get("generator") is not None:
        yield
        return
    if takes_generator:
        kwargs["generator"] = generator(ordinal)
        with _lock:
            yield
        return
    shared, own = torch.default_generator, generator(ordinal)
    with _lock:
        before = shared.get_state()
        shared.set_state(own.get_state())
        try:
            yield
        finally:
            own.set_state(shared.get_state())
            shared.set_state(before)
