"""Factories: every `torch.zeros(..., device=...)` ends in `empty`, caught here at the BackendSelect key.

A dispatch key reaches every thread, which a TorchDispatchMode would not: nn.DataParallel runs user code in threads.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch._C import DispatchKey, DispatchKeySet
from torch.utils._device import _device_constructors

from frcnn_lite.vgpu import devices, tensor
from frcnn_lite.vgpu.patches import Patches

_CPU_KEYS = DispatchKeySet(DispatchKey.CPU)


def install(patches: Patches) -> torch.library.Library:
    """Catch the factories; the library returned takes the hooks away with `_destroy()`.

    Constructors from Python data ask C++ for the index of a bare "cuda" before any hook could, so they are wrapped.
    """
    _device_constructors()  # caches the original functions, for set_default_device
    for owner, name in ((torch, "tensor"), (torch, "as_tensor"), (torch, "asarray"), (torch.Tensor, "new_tensor")):
        patches.set(owner, name, _located(getattr(owner, name)))
    library = torch.library.Library("aten", "IMPL")
    aten = torch.ops.aten
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Warning only once for all operators")
        library.impl("empty.memory_format", _hook(aten.empty.memory_format), "BackendSelect")
        library.impl("empty_strided", _hook(aten.empty_strided.default), "BackendSelect")
        library.impl("_efficientzerotensor", _hook(aten._efficientzerotensor.default, zero=True), "BackendSelect")
    return library


def _located(constructor: Callable) -> Callable:
    @functools.wraps(constructor)
    def located(*args: Any, **kwargs: Any) -> Any:
        device = kwargs.get("device")
        if device is not None:
            kwargs["device"] = devices.internal(device)
        elif constructor.__name__ == "new_tensor" and args[0].is_cuda:
            kwargs["device"] = devices.internal(args[0].device)
        return constructor(*args, **kwargs)

    return located


def _hook(op: torch._ops.OpOverload, zero: bool = False) -> Callable:
    redispatch = op.redispatch
    cpu_keys = DispatchKeySet(DispatchKey.ZeroTensor).add(DispatchKey.CPU) if zero else _CPU_KEYS

    def factory(*args: Any, device: Any = None, layout: Any = None, pin_memory: Any = None, **kwargs: Any) -> Any:
        if device is None or (device.type == "cpu" and not device.index):
            if layout is None or layout is torch.strided:
                return redispatch(cpu_keys, *args, layout=layout, device=device, pin_memory=False, **kwargs)
        else:
            ordinal = devices.ordinal_of(device)
            if ordinal is not None:
                keys = cpu_keys if layout in (None, torch.strided) else _keys("cpu", layout)
                made = redispatch(keys, *args, layout=layout, device=devices.CPU, pin_memory=False, **kwargs)
                return tensor.wrap(made, ordinal)
        keys = _keys(device.type if device is not None else "cpu", layout)
        return redispatch(keys, *args, layout=layout, device=device, pin_memory=pin_memory, **kwargs)

    return factory


def _keys(device_type: str, layout: torch.layout | None) -> DispatchKeySet:
    backend = torch._C._dispatch_key_for_device(device_type)
    prefix = {torch.sparse_coo: "Sparse", torch.sparse_csr: "SparseCsr"}.get(layout, "")  # type: ignore[arg-type]
    return DispatchKeySet(getattr(DispatchKey, prefix + backend))
