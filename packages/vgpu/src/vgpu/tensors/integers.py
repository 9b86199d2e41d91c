"""`device=1` on builds of PyTorch without CUDA, whose C++ refuses an integer before anything could be replaced."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._device import _device_constructors

from vgpu.base.builds import WITH_CUDA
from vgpu.base.patches import Patches
from vgpu.machine import devices

_CDevice = torch.device


def install(patches: Patches) -> None:
    """Replace what reads a device in C++: `torch.device`, `Module.to`, and on builds without CUDA the factories."""
    parse_to = torch._C._nn._parse_to  # type: ignore[attr-defined]

    def _parse_to(*args: Any, **kwargs: Any) -> Any:
        return parse_to(*map(_named, args), **{k: _named(v) if k == "device" else v for k, v in kwargs.items()})

    patches.set(torch._C._nn, "_parse_to", _parse_to)
    if WITH_CUDA:
        return
    patches.set(torch, "device", _Device)
    # Those of factories.py, which wrap another function, read integers themselves; export knows them by identity.
    readers = {value for value in _device_constructors() if not hasattr(value, "__wrapped__")}
    factories = {name for name, value in vars(torch).items() if callable(value) and value in readers}
    factories |= {name for name in dir(torch) if name.endswith("_like")}
    for name in sorted(factories):
        patches.operator(torch, name, _reading_integers(getattr(torch, name)))
    for name in ("new_empty", "new_empty_strided", "new_full", "new_ones", "new_zeros"):
        patches.set(torch.Tensor, name, _reading_integers(getattr(torch.Tensor, name)))


def _named(device: Any) -> Any:
    return devices.PUBLIC[devices.check(device)] if type(device) is int else device


def _reading_integers(factory: Callable) -> Callable:
    @functools.wraps(factory)
    def reading(*args: Any, **kwargs: Any) -> Any:
        if type(kwargs.get("device")) is int:
            kwargs["device"] = _named(kwargs["device"])
        return factory(*args, **kwargs)

    return reading


class _DeviceType(type):
    """Makes `_Device` answer as the C++ class it stands for, which the code that torch.export writes refers to."""

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is _CDevice

    def __hash__(cls) -> int:
        return hash(_CDevice)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _CDevice)

    def __call__(cls, *args: Any, **kwargs: Any) -> torch.device:
        if len(args) == 1 and not kwargs:
            args = (_named(args[0]),)
        return _CDevice(*args, **kwargs)


class _Device(metaclass=_DeviceType):
    """`torch.device` on builds without CUDA, whose C++ class refuses `torch.device(1)`."""

    __module__, __qualname__ = "torch", "device"
