"""The oldest names for tensors: `torch.FloatTensor`, `torch.cuda.FloatTensor`, `x.type(...)` and `x.new(...)`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from vgpu.base import errors
from vgpu.base.patches import Patches
from vgpu.machine import devices, memory
from vgpu.tensors.tensor import is_virtual, view

_type, _new = torch._C.TensorBase.type, torch._C.TensorBase.new  # type: ignore[attr-defined]
_set_default = torch._C._set_default_tensor_type  # type: ignore[attr-defined]
_CType = type(torch.FloatTensor)


class _TensorType(type):
    """`torch.cuda.FloatTensor` and its kin: classes that make tensors on the current device, their only instances."""

    dtype: torch.dtype
    is_cuda, is_sparse, layout = True, False, torch.strided

    def __call__(cls, *args: Any, device: Any = None, **named: Any) -> Tensor:
        return torch.empty(0, dtype=cls.dtype, device="cuda" if device is None else device).new(*args, **named)

    def __instancecheck__(cls, instance: object) -> bool:
        return is_virtual(instance) and instance.dtype is cls.dtype and instance.layout is torch.strided

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"


class _HostType(_TensorType):
    """`torch.FloatTensor` and its kin. C++ would take virtual tensors for its own, so it is asked of others alone."""

    original: Any
    is_cuda = False

    def __call__(cls, *args: Any, **named: Any) -> Tensor:
        return cls.original(*args, **named)

    def __instancecheck__(cls, instance: object) -> bool:
        return not is_virtual(instance) and isinstance(instance, cls.original)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.original

    def __hash__(cls) -> int:
        return hash(cls.original)


def _made(kind: type, module: str, name: str, **facts: Any) -> Any:
    return kind(name, (), {"__module__": module, "__qualname__": name, **facts})


_DTYPES = {f"{name}Tensor": dtype for dtype, name in errors.LEGACY_NAMES.items()}
_TYPES = {name: _made(_TensorType, "torch.cuda", name, dtype=dtype) for name, dtype in _DTYPES.items()}
_HOSTS = {
    name: _made(_HostType, "torch", name, dtype=dtype, original=getattr(torch, name))
    for name, dtype in _DTYPES.items()
    if hasattr(torch, name)  # complex numbers never had a type
}


def install(patches: Patches) -> None:
    """Replace the types, and what goes by types."""
    for name, kind in _HOSTS.items():
        patches.set(torch, name, kind)
        patches.set(torch.cuda, name, _TYPES[name])
    patches.set(Tensor, "type", change_type)
    patches.set(Tensor, "new", new)
    patches.set(torch._C, "_set_default_tensor_type", set_default)


def change_type(self: Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    """`x.type()` names the type of x, `x.type(kind)` converts x to another type, or moves it to another device."""
    if dtype is None:
        return errors.tensor_type(self) if is_virtual(self) else _type(self)
    if isinstance(dtype, str) and dtype.startswith("torch.cuda."):
        dtype = _TYPES.get(dtype.removeprefix("torch.cuda."), dtype)
    if type(dtype) is _TensorType:
        home = self.device if self.is_cuda else torch.device("cuda")  # noqa: FL001 the current one is meant
        return self.to(home, dtype.dtype, non_blocking=non_blocking)
    dtype = _in_cpp(dtype)
    if isinstance(dtype, (str, _CType)) and self.is_cuda:
        return _type(self.cpu(), dtype)  # type: ignore[arg-type]
    return _type(self, dtype, non_blocking, **kwargs)


def _in_cpp(kind: Any) -> Any:
    """What C++ has for a type of the CPU; anything else as it is."""
    return kind.original if type(kind) is _HostType else kind


def new(self: Tensor, *args: Any, device: Any = None, **named: Any) -> Tensor:
    """`x.new(*sizes)` and `x.new(data)`: a tensor like x, and on its device."""
    if "size" in named:
        args = (torch.Size(named.pop("size")), *args)
    args = (*args, *(named.pop(name) for name in ("data", "other") if name in named))
    ordinal = devices.ordinal_of(device)
    own = "cuda" if is_virtual(self) else "cpu"
    if device is not None and (ordinal is not None) != (own == "cuda"):
        asked = "cuda" if ordinal is not None else torch.device(device).type
        raise RuntimeError(f"legacy constructor expects device type: {own} but device type: {asked} was passed")
    if not is_virtual(self) or (len(args) == 1 and is_virtual(args[0])):
        return _new(self, *args, **named)
    made = _new(self._host, *args, **named)
    place = memory.ordinal_of(made.untyped_storage())
    if place is not None:  # it was made of a storage
        return view(made, place)
    return made.to(self.device if ordinal is None else devices.PUBLIC[ordinal])


def set_default(kind: Any) -> None:
    """`torch.set_default_tensor_type`: of a type of `torch.cuda` the device becomes the default device."""
    if type(kind) is _TensorType:
        _set_default(_in_cpp(_HOSTS[kind.__name__]))
        torch.set_default_device("cuda")
        return
    _set_default(_in_cpp(kind))
    if torch.get_default_device().type == "cuda":
        torch.set_default_device(None)
