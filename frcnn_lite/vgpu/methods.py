"""The methods of `torch.Tensor` that name a device, or that replace a tensor's contents by those of another device."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

from frcnn_lite.vgpu import devices, errors, lazy
from frcnn_lite.vgpu.patches import Patches
from frcnn_lite.vgpu.tensor import VirtualTensor

_PRINT_DEVICES = [(owner, name) for owner in (torch, Tensor) for name in ("tensor_split", "take_along_dim")]
_PRINT_DEVICES += [(torch, "stft"), (torch, "gradient"), (torch.linalg, "multi_dot"), (torch.linalg, "matrix_rank")]
_PRINT_DEVICES += [(owner, "scaled_dot_product_attention") for owner in (torch._C._nn, torch.nn.functional)]
_Device = torch.device  # the C++ class, whatever stands in torch.device later
_base: Any = torch._C.TensorBase
_to = _base.to
_data, _grad = _base.data, _base.grad


def install(patches: Patches) -> None:
    """Replace the methods, and the question nn.Module asks before it assigns `.data`."""
    patches.functions(Tensor, "", to, cuda, pin_memory, is_pinned)
    patches.set(Tensor, "data", property(_data.__get__, set_data))
    patches.set(Tensor, "grad", property(_grad.__get__, _set_grad, _grad.__delete__))
    compatible = torch._has_compatible_shallow_copy_type

    # The names of the parameters are PyTorch's: its compiler compares signatures when it is imported.
    def _has_compatible_shallow_copy_type(input: Tensor, from_: Tensor) -> bool:
        # True makes Module._apply keep the Parameter object and assign `.data`, as it does for real GPUs.
        return isinstance(input, VirtualTensor) or isinstance(from_, VirtualTensor) or compatible(input, from_)

    # The functions of PyTorch that print devices before any operator is called.
    for owner, name in _PRINT_DEVICES:
        patches.set(owner, name, _in_public_words(getattr(owner, name)))
    patches.set(torch, "_has_compatible_shallow_copy_type", _has_compatible_shallow_copy_type)


def _in_public_words(function: Callable) -> Callable:
    @functools.wraps(function)
    def worded(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except RuntimeError as error:
            raise RuntimeError(errors.public_text(str(error))) from None

    return worded


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    if isinstance(self, UninitializedTensorMixin):
        return lazy.moved(self, args, kwargs)
    if args and isinstance(args[0], (str, _Device, int)):
        args = (devices.internal(args[0]), *args[1:])
    if kwargs.get("device") is not None:
        kwargs["device"] = devices.internal(kwargs["device"])
    return _to(self, *args, **kwargs)


def cuda(
    self: Tensor,
    device: Any = None,
    non_blocking: bool = False,
    memory_format: torch.memory_format = torch.preserve_format,
) -> Tensor:
    ordinal = devices.check(devices.current()) if device is None else devices.ordinal_of(device)
    if ordinal is None:
        raise RuntimeError(f"Invalid device, must be cuda device but got {device}")
    if isinstance(self, UninitializedTensorMixin):
        return lazy.moved(self, (devices.PUBLIC[ordinal],), {})
    return _to(self, devices.INTERNAL[ordinal], non_blocking=non_blocking, memory_format=memory_format)


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    if is_pinned(self):
        return self
    pinned = self.clone()
    pinned._vgpu_pinned = True  # type: ignore[attr-defined]
    return pinned


def is_pinned(self: Tensor, device: Any = None) -> bool:
    return getattr(self, "_vgpu_pinned", False)


def set_data(self: Tensor, new: Tensor) -> None:
    """`self.data = new`, also where that moves the tensor to or from a virtual GPU."""
    if isinstance(self, UninitializedTensorMixin) and isinstance(new, UninitializedTensorMixin):
        lazy.follow(self, new)
    ours, theirs = isinstance(self, VirtualTensor), isinstance(new, VirtualTensor)
    if ours and theirs:
        _data.__set__(self, new)
        self._host, self._ordinal = new._host, new._ordinal  # type: ignore[attr-defined]
    elif ours or theirs:
        _exchange(self, new)
    else:
        _data.__set__(self, new)


def _exchange(self: Tensor, new: Tensor) -> None:
    """Swap the C++ tensor under a Python object: the object stays the one that optimizers and modules hold."""
    fresh = new.detach()
    fresh = fresh if fresh is not new and fresh._base is None else fresh.view_as(fresh)
    fresh.requires_grad_(self.requires_grad)
    grad, hooks, after = self.grad, self._backward_hooks, self._post_accumulate_grad_hooks
    self.grad = None
    own = {k: v for k, v in self.__dict__.items() if k not in ("_host", "_ordinal")}
    is_param = isinstance(self, torch.nn.Parameter)
    torch._C._swap_tensor_impl(self, fresh)  # type: ignore[attr-defined]
    kind = type(self)
    if isinstance(new, VirtualTensor):
        self.__dict__ = {**own, "_host": new._host, "_ordinal": new._ordinal}
        if is_param:
            self._is_param = True  # type: ignore[attr-defined]
        self.__class__ = VirtualTensor
    else:
        own.pop("_is_param", None)
        self.__dict__ = own
        self.__class__ = torch.nn.Parameter if is_param else Tensor
    fresh.__dict__.clear()
    fresh.__class__ = kind if kind is not VirtualTensor else Tensor
    if grad is not None and grad.shape == self.shape:
        set_data(grad, grad.detach().to(self.device))
        self.grad = grad
    self._backward_hooks, self._post_accumulate_grad_hooks = hooks, after  # type: ignore[attr-defined]


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
