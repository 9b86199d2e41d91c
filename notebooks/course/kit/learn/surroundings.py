"""What a function may leave changed in the kernel that called it: found out after the call, and put back.

A reader's answer runs in the kernel of their notebook. What it leaves behind, a seed, a mode or another current device,
would change what the cells below it print.
"""

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

Get = Callable[[], Any]
Set = Callable[[Any], Any]


def _set_default_device(device: torch.device) -> None:
    """None takes the default device away; `"cpu"` would leave a mode behind that every call passes through."""
    torch.set_default_device(None if device.type == "cpu" else device)


def _autocast(kind: str) -> tuple[Get, Set]:
    return lambda: torch.is_autocast_enabled(kind), lambda on: torch.set_autocast_enabled(kind, on)


def _cudnn(flag: str) -> tuple[Get, Set]:
    return lambda: getattr(torch.backends.cudnn, flag), lambda on: setattr(torch.backends.cudnn, flag, on)


MODES: tuple[tuple[Get, Set], ...] = (
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.get_default_device, _set_default_device),
    (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
    (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
    (torch.get_num_threads, torch.set_num_threads),
    _autocast("cpu"),
    _autocast("cuda"),
    _cudnn("deterministic"),
    _cudnn("benchmark"),
)
SEEDS: tuple[tuple[Get, Set], ...] = (
    (random.getstate, random.setstate),
    (np.random.get_state, np.random.set_state),
    (torch.get_rng_state, torch.set_rng_state),
)
CUDA_SEEDS: tuple[Get, Set] = (torch.cuda.get_rng_state_all, torch.cuda.set_rng_state_all)


class Surroundings:
    """The state of this thread and process, and the modes of the modules in `inputs`, at the moment it is made."""

    def __init__(self, inputs: Any = ()) -> None:
        """inputs: modules, also inside lists, tuples and dicts, whose training modes are to be put back as well."""
        self.device = current_gpu()
        seeds = (*SEEDS, CUDA_SEEDS) if torch.cuda.is_initialized() else SEEDS
        self._modes = [(get, put, get()) for get, put in MODES]
        self._seeds = [(put, get()) for get, put in seeds]
        self._training = [(part, part.training) for net in _modules(inputs) for part in net.modules()]

    def moved_to(self) -> int | None:
        """The current GPU, where it is no longer the one it was; else None."""
        now = current_gpu()
        return None if now == self.device else now

    def restore(self) -> None:
        """Put everything back; a mode is touched only where it differs."""
        if self.moved_to() is not None:
            torch.cuda.set_device(self.device)
        for get, put, before in self._modes:
            if get() != before:
                put(before)
        for put, before in self._seeds:
            put(before)
        for part, training in self._training:
            part.training = training


def seed_all(seed: int) -> None:
    """Seed the generators of Python, NumPy and torch, on every GPU."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def current_gpu() -> int:
    """The current GPU of this thread; 0, with which every thread starts, as long as nobody has used CUDA."""
    return torch.cuda.current_device() if torch.cuda.is_initialized() else 0


def _modules(value: Any) -> Iterator[nn.Module]:
    if isinstance(value, nn.Module):
        yield value
    elif isinstance(value, dict):
        yield from _modules(list(value.values()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _modules(part)
