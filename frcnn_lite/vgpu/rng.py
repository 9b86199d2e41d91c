"""Random numbers: one generator per virtual GPU, independent of the CPU's and of the other devices.

The streams are those of the CPU's Mersenne twister, not CUDA's Philox: seeds reproduce, values differ from real GPUs.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import torch

DEFAULT_SEED = 67280421310721  # of every default generator of PyTorch that nobody has seeded

_lock = threading.RLock()
_generators: dict[int, torch.Generator] = {}


def generator(ordinal: int) -> torch.Generator:
    """The default generator of one device."""
    with _lock:
        if ordinal not in _generators:
            _generators[ordinal] = torch.Generator().manual_seed(DEFAULT_SEED)
        return _generators[ordinal]


def reset() -> None:
    """Forget all generators; each starts again from the CPU's seed."""
    _generators.clear()


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
