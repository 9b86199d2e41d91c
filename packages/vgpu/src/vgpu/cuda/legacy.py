"""The oldest names for tensors on a GPU: `torch.cuda.FloatTensor`, `x.type(...)` and `x.new(...)`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from vgpu.base import errors
from vgpu.base.patches import Patches
from vgpu.machine import devices
from vgpu.tensors.tensor import is_virtual

_type, _new = torch._C.TensorBase.type, torch._C.TensorBase.new  # type: ignore[attr-defined]


class _TensorType:
    """`torch.cuda.FloatTensor` and its kin: makes tensors on the current device, answers `isinstance`."""

    is_cuda, is_sparse, layout = True, False, torch.strided

    def __init__(self, name: str, dtype: torch.dtype) -> None:
        self.__name__, self.dtype = name, dtype

    def __call__(self, *args: Any, device: Any = None) -> Tensor:
        return torch.empty(0, dtype=self.dtype, device="cuda" if device is None else device).new(*args)

    def __instancecheck__(self, instance: object) -> bool:
        return is_virtual(instance) and instance.dtype is self.dtype

    def __repr__(self) -> str:
        return f"<class 'torch.cuda.{self.__name__}'>"


_TYPES = {f"{name}Tensor": _TensorType(f"{name}Tensor", dtype) for dtype, name in errors.LEGACY_NAMES.items()}


def install(patches: Patches) -> None:
    """Replace the types of `torch.cuda`, and the two methods of tensors that go by types."""
    for name, kind in _TYPES.items():
        if hasattr(torch.cuda, name):  # complex numbers never had a type
            patches.set(torch.cuda, name, kind)
    patches.set(Tensor, "type", change_type)
    patches.set(Tensor, "new", new)


def change_type(self: Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    """`x.type()` names the type of x, `x.type(kind)` converts x to another type, or moves it to another device."""
    if dtype is None:
        return errors.tensor_type(self) if is_virtual(self) else _type(self)
    kind = dtype if isinstance(dtype, _TensorType) else None
    if isinstance(dtype, str) and dtype.startswith("torch.cuda."):
        kind = _TYPES.get(dtype.removeprefix("torch.cuda."))
    if kind is not None:
        home = self.device if self.is_cuda else torch.device("cuda")  # noqa: FL001 the current one is meant
        return self.to(home, kind.dtype, non_blocking=non_blocking)
    if isinstance(dtype, (str, type(torch.FloatTensor))) and self.is_cuda:
        return _type(self.cpu(), dtype)  # type: ignore[arg-type]
    return _type(self, dtype, non_blocking, **kwargs)


def new(self: Tensor, *args: Any, device: Any = None) -> Tensor:
    """`x.new(*sizes)` and `x.new(data)`: a tensor like x, and on its device."""
    ordinal = devices.ordinal_of(device)
    own = "cuda" if is_virtual(self) else "cpu"
    if device is not None and (ordinal is not None) != (own == "cuda"):
        asked = "cuda" if ordinal is not None else torch.device(device).type
        raise RuntimeError(f"legacy constructor expects device type: {own} but device type: {asked} was passed")
    if not is_virtual(self) or (len(args) == 1 and is_virtual(args[0])):
        return _new(self, *args)
    return _new(self._host, *args).to(self.device if ordinal is None else devices.PUBLIC[ordinal])
