"""Lazy modules: a parameter without a shape holds no memory, so all it needs on a virtual GPU is to know its device.

It stays a plain object of PyTorch's own class, with `_vgpu_home` for the device, until `materialize` gives it a shape.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

import torch
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter, UninitializedTensorMixin  # type: ignore[attr-defined]

from vgpu.base.patches import Patches
from vgpu.machine import devices


def install(patches: Patches) -> None:
    """Replace how lazy parameters are made, and where they materialize."""
    mixin = UninitializedTensorMixin
    materialize = mixin.materialize

    def materialize_at_home(self: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
        home = self.__dict__.pop("_vgpu_home", None)
        if home is None and devices.ordinal_of(device) is None:
            materialize(self, shape, device, dtype)
            return
        dtype = self.data.dtype if dtype is None else dtype
        self.__class__ = self.cls_to_become  # before the data, whose arrival makes it a virtual tensor
        self.data = torch.empty(shape, device=home if device is None else device, dtype=dtype)

    patches.set(mixin, "materialize", materialize_at_home)
    # The mixin has none of the following four: the classes that it is part of inherit them from Tensor.
    patches.set(mixin, "device", property(device_of), may_be_missing=True)
    for name, dtype in (("half", torch.float16), ("float", torch.float32), ("double", torch.float64)):
        patches.set(mixin, name, lambda parameter, dtype=dtype: moved(parameter, (dtype,), {}), may_be_missing=True)
    for kind in (UninitializedParameter, UninitializedBuffer):
        patches.set(kind, "__new__", staticmethod(_maker(kind.__new__)))


def _maker(make: Any) -> Any:
    signature = inspect.signature(make)

    @functools.wraps(make)
    def __new__(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        ordinal = devices.ordinal_of(given.get("device") or torch.get_default_device())
        if ordinal is not None:
            given["device"] = devices.CPU
        return _settle(make(**given), ordinal)

    return __new__


def _settle(parameter: Any, ordinal: int | None) -> Any:
    if ordinal is not None:
        parameter._vgpu_home = devices.PUBLIC[ordinal]
    return parameter


def device_of(parameter: Any) -> torch.device:
    """Where an uninitialized parameter will materialize."""
    home = parameter.__dict__.get("_vgpu_home")
    return home if home is not None else torch._C.TensorBase.device.__get__(parameter)  # type: ignore[attr-defined]


def moved(parameter: Any, args: tuple, kwargs: dict) -> Any:
    """`parameter.to(*args, **kwargs)` of an uninitialized parameter: a new one that will materialize there."""
    device, dtype, *_ = torch._C._nn._parse_to(*args, **kwargs)  # type: ignore[attr-defined]
    target = device_of(parameter) if device is None else device
    with torch._C.DisableTorchFunctionSubclass():
        dtype = parameter.dtype if dtype is None else dtype
    made = type(parameter)(parameter.requires_grad, target, dtype)
    made.__dict__.update({k: v for k, v in parameter.__dict__.items() if k != "_vgpu_home"})
    return made


def follow(parameter: Any, new: Any) -> None:
    """`parameter.data = new` between uninitialized parameters, as `Module.to` does it."""
    parameter.__dict__.pop("_vgpu_home", None)
    _settle(parameter, devices.ordinal_of(device_of(new)))
