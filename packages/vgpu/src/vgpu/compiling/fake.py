"""FakeTensors on "cuda", as torch.export makes them of virtual tensors: C++ sees them as it sees virtual tensors.

Autograd asks C++ for the device of a FakeTensor and for the stream of that device. A build of torch without CUDA
has none, nor has one without a driver, and the interpreter ends. So C++ gets `cpu:64+k` (devices.py), and where it
passes that on to an operator, the modes that trace programs read `cuda:k` again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch._subclasses.functional_tensor import FunctionalTensorMode
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode

from vgpu.base.patches import Patches
from vgpu.machine import devices

_device_query = torch.ops.prim.device.default


def install(patches: Patches) -> None:
    """Replace what FakeTensors answer, and what the tracing modes are given."""
    of_tensors = FakeTensor.__torch_dispatch__.__func__  # type: ignore[attr-defined]
    patches.set(FakeTensor, "__torch_dispatch__", classmethod(_translated(of_tensors, _public)))
    for mode in (FunctionalTensorMode, ProxyTorchDispatchMode):
        patches.set(mode, "__torch_dispatch__", _translated(mode.__torch_dispatch__, _public))
    patches.set(FakeTensorMode, "__torch_dispatch__", _translated(FakeTensorMode.__torch_dispatch__, _indexed))


def _translated(dispatch: Callable, read: Callable[[Any], Any]) -> Callable:
    @functools.wraps(dispatch)
    def __torch_dispatch__(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is _device_query:
            return _internal(dispatch(self, func, types, args, {}))
        args, kwargs = tuple(map(read, args)), {k: read(v) for k, v in (kwargs or {}).items()}
        return dispatch(self, func, types, args, kwargs)

    return __torch_dispatch__


def _internal(device: torch.device) -> torch.device:
    return devices.INTERNAL[device.index or 0] if device.type == "cuda" else device


def _public(value: Any) -> Any:
    return devices.public(value) if isinstance(value, torch.device) else value


def _indexed(value: Any) -> Any:
    """A device with its index: until torch 2.14 the cache of FakeTensorMode takes "cuda" of two threads for one GPU."""
    value = _public(value)
    unnumbered = isinstance(value, torch.device) and value.type == "cuda" and value.index is None
    return devices.PUBLIC[devices.current()] if unnumbered else value
