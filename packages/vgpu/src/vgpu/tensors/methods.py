"""The methods of `torch.Tensor` that name a device or must know it; `x.data = y` stands in set_data.py."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

from vgpu.base.patches import Patches
from vgpu.machine import devices, pinned
from vgpu.tensors import lazy, storages
from vgpu.tensors.set_data import set_data
from vgpu.tensors.tensor import is_virtual

# The functions of PyTorch that print devices before any operator is called.
_PRINT_DEVICES: tuple[tuple[Any, str], ...] = (
    (torch, "gradient"),
    (torch, "stft"),
    (torch, "take_along_dim"),
    (torch, "tensor_split"),
    (Tensor, "take_along_dim"),
    (Tensor, "tensor_split"),
    (torch.linalg, "matrix_rank"),
    (torch.linalg, "multi_dot"),
    # one function, under the name that C++ gives it and under the public one
    (torch._C._nn, "scaled_dot_product_attention"),
    (torch.nn.functional, "scaled_dot_product_attention"),
)
_Device = torch.device  # the C++ class, whatever stands in torch.device later
# The methods of C++ beneath those that are replaced.
_base: Any = torch._C.TensorBase
_to = _base.to
_data = _base.data
_grad = _base.grad
_device = _base.device.__get__
_is_cpu = _base.is_cpu.__get__
_get_device = _base.get_device


class _Attribute(property):
    """Stands for an attribute of C++; PyTorch's compiler knows those by their class and name."""

    __objclass__ = torch._C.TensorBase

    def __init__(self, name: str, *functions: Any) -> None:
        super().__init__(*functions)
        self.__name__ = name


def install(patches: Patches) -> None:
    """Replace the methods, and the question nn.Module asks before it assigns `.data`."""
    patches.functions(Tensor, "", to, pin_memory, is_pinned, get_device, set_)
    patches.set(Tensor, "cuda", to_cuda)
    patches.set(Tensor, "device", _Attribute("device", _read_device))
    patches.set(Tensor, "is_cuda", _Attribute("is_cuda", lambda tensor: _read_device(tensor).type == "cuda"))
    patches.set(Tensor, "is_cpu", _Attribute("is_cpu", lambda tensor: _read_device(tensor).type == "cpu"))
    patches.set(Tensor, "data", _Attribute("data", _data.__get__, set_data))
    patches.set(Tensor, "grad", _Attribute("grad", _grad.__get__, _set_grad, _grad.__delete__))
    patches.forget(torch.overrides.get_default_nowrap_functions)  # remembers the attribute `grad` itself
    compatible = torch._has_compatible_shallow_copy_type

    # The names of the parameters are PyTorch's: its compiler compares signatures when it is imported.
    def _has_compatible_shallow_copy_type(input: Tensor, from_: Tensor) -> bool:
        # True makes Module._apply keep the Parameter object and assign `.data`, as it does for real GPUs.
        return is_virtual(input) or is_virtual(from_) or compatible(input, from_)

    for owner, name in _PRINT_DEVICES:
        patches.set(owner, name, _in_public_words(getattr(owner, name)))
    patches.set(torch, "_has_compatible_shallow_copy_type", _has_compatible_shallow_copy_type)


def _in_public_words(function: Callable) -> Callable:
    @functools.wraps(function)
    def worded(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except RuntimeError as error:
            raise RuntimeError(devices.public_text(str(error))) from None

    return worded


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`x.to(...)` in every form: C++ gets `cpu:64+k` where the caller says `cuda:k`."""
    if isinstance(self, UninitializedTensorMixin):
        return lazy.moved(self, args, kwargs)
    if args and isinstance(args[0], (str, _Device, int)):
        args = (devices.internal(args[0]), *args[1:])
    if kwargs.get("device") is not None:
        kwargs["device"] = devices.internal(kwargs["device"])
    return _to(self, *args, **kwargs)


def to_cuda(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    """`x.cuda(device)`: x on that virtual GPU, or on the current one."""
    ordinal = devices.check(devices.current()) if device is None else devices.ordinal_of(device)
    if ordinal is None:
        raise RuntimeError(f"Invalid device, must be cuda device but got {device}")
    if isinstance(self, UninitializedTensorMixin):
        return lazy.moved(self, (devices.PUBLIC[ordinal],), {})
    if memory_format is None:
        memory_format = torch.preserve_format
    return _to(self, devices.INTERNAL[ordinal], non_blocking=non_blocking, memory_format=memory_format)


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """`x.pin_memory()` of a tensor on the CPU: a copy that says that it is pinned."""
    return self if is_pinned(self) else pinned.pin(self.clone())


def is_pinned(self: Tensor, device: Any = None) -> bool:
    """`x.is_pinned()` of a tensor on the CPU."""
    return self.layout is torch.strided and pinned.is_pinned(self.untyped_storage())


# Virtual tensors answer for themselves; these are for wrappers around them, as vmap and gradient transforms make them,
# which know their device from C++.
def _read_device(self: Tensor) -> torch.device:
    return devices.public(_device(self))


def get_device(self: Tensor) -> int:
    """`x.get_device()`: k for a wrapper around a tensor on `cuda:k`, what C++ says for all other tensors."""
    index = _get_device(self)
    return index - devices.FIRST if index >= devices.FIRST and _is_cpu(self) else index


def set_(self: Tensor, source: Any = None, *layout: Any) -> Tensor:
    """`x.set_(source)`: x becomes a view of a tensor or storage, which must lie on the device of x."""
    if source is not None:
        storage = source._untyped_storage if isinstance(source, torch.TypedStorage) else source
        place = storage.device if isinstance(storage, Tensor) else storages.device_of(storage)
        if place != self.device and "cuda" in (place.type, self.device.type):
            raise RuntimeError(
                f'Attempted to set the storage of a tensor on device "{self.device}" to a storage on different '
                f'device "{place}".  This is no longer allowed; the devices must match.'
            )
    return _base.set_(self) if source is None else _base.set_(self, source, *layout)


def _set_grad(self: Tensor, grad: Tensor | None) -> None:
    if isinstance(grad, Tensor) and grad.device != self.device:
        if grad.device.type != self.device.type:
            raise RuntimeError(
                f"attempting to assign a gradient with device type '{grad.device.type}' to a tensor with device type "
                f"'{self.device.type}'. Please ensure that the gradient and the tensor are on the same device"
            )
        raise RuntimeError(
            f"attempting to assign a gradient located on device with index '{grad.get_device()}' to a tensor located "
            f"on device with index '{self.get_device()}'. Please ensure that the gradient and the tensor are on the "
            "same device"
        )
    _grad.__set__(self, grad)
