"""DLPack: capsules of virtual tensors say that their memory is on `cuda:k`, and come back as tensors that are there.

What reads a capsule and knows memory of the CPU alone, as NumPy does, refuses it, as it refuses those of real GPUs. The
places of the fields are those of dlpack.h, which does not change them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from vgpu.base.patches import Patches
from vgpu.machine import devices, memory
from vgpu.tensors.tensor import is_virtual, view

_CPU, _CUDA = 1, 2  # kDLCPU, kDLCUDA
_OURS = 0x76677075  # marks the capsules of this file: no others have memory that the CPU can read
# Where the device is in DLManagedTensor, and in the DLManagedTensorVersioned that has four fields before the tensor.
_PLACES = {b"dltensor": 8, b"dltensor_versioned": 40}


def _of_python(name: str, gives: Any, *takes: Any) -> Any:
    """A function of Python's own C API."""
    return ctypes.PYFUNCTYPE(gives, ctypes.py_object, *takes)((name, ctypes.pythonapi))


_pointer_of = _of_python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_char_p)
_name_of = _of_python("PyCapsule_GetName", ctypes.c_char_p)
_mark_of = _of_python("PyCapsule_GetContext", ctypes.c_void_p)
_mark = _of_python("PyCapsule_SetContext", ctypes.c_int, ctypes.c_void_p)


def install(patches: Patches) -> None:
    """Replace the functions of C++ that make capsules and read them, under each of their names."""
    for name in ("_to_dlpack", "_to_dlpack_versioned"):
        patches.set(torch._C, name, _exported(getattr(torch._C, name)))
    patches.set(torch._C, "_from_dlpack", _imported(torch._C._from_dlpack))  # type: ignore[attr-defined]
    for module in (torch, torch.utils.dlpack):
        patches.set(module, "to_dlpack", torch._C._to_dlpack)  # type: ignore[attr-defined]


def _exported(write: Callable) -> Callable:
    def to_dlpack(data: Tensor, *, dl_device: Any = None, copy: bool | None = None, **more: Any) -> Any:
        """A capsule of `data`, on the device that is asked for."""
        target = _device(dl_device)
        if target is not None and target != data.device and (target.type == "cuda" or is_virtual(data)):
            if copy is False:
                raise ValueError(
                    f"cannot move (i.e. copy=False) tensor from {data.device} to {target} without copying."
                )
            data, copy, dl_device = data.to(target), None, None
        if not is_virtual(data):
            return write(data, dl_device=dl_device, copy=copy, **more)
        capsule = write(data._host.detach(), copy=copy, **more)
        _say(capsule, _CUDA, data._ordinal)
        _mark(capsule, _OURS)
        return capsule

    return to_dlpack


def _imported(read: Callable) -> Callable:
    def from_dlpack(capsule: Any) -> Tensor:
        """The tensor of a capsule, over the same memory, which its device counts no second time."""
        if not _is_ours(capsule):
            return read(capsule)
        ordinal = _said(capsule)
        _say(capsule, _CPU, 0)
        made = read(capsule)
        memory.borrow(made.untyped_storage(), ordinal)
        return view(made, ordinal)

    return from_dlpack


def _is_ours(capsule: Any) -> bool:
    """True for what `to_dlpack` made of a virtual tensor and nobody has read yet."""
    return type(capsule).__name__ == "PyCapsule" and _mark_of(capsule) == _OURS and _name_of(capsule) in _PLACES


def _device(named: tuple[int, int] | None) -> torch.device | None:
    if named is None:
        return None
    return devices.PUBLIC[devices.check(named[1])] if named[0] == _CUDA else devices.CPU


def _fields(capsule: Any) -> Any:
    """The type of the device and its index."""
    name = _name_of(capsule)
    return (ctypes.c_int32 * 2).from_address(_pointer_of(capsule, name) + _PLACES[name])


def _say(capsule: Any, kind: int, index: int) -> None:
    _fields(capsule)[:] = [kind, index]


def _said(capsule: Any) -> int:
    return _fields(capsule)[1]
