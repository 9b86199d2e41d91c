"""Tensor subclasses of the user's own on virtual GPUs: `x.as_subclass(Image)`, `Image(pixels).cuda()`.

A virtual tensor has a class of this package; one that is to be an `Image`, too, gets a class made of both.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import _foreach_supported_types as of_optimizers
from torch.utils._foreach_utils import _foreach_supported_types as of_foreach

from vgpu.base.patches import Patches
from vgpu.tensors.tensor import KINDS, VirtualTensor, is_virtual

_as_subclass = torch._C.TensorBase.as_subclass  # type: ignore[attr-defined]
_make_subclass = Tensor._make_subclass
_new = torch._C.TensorBase.__new__  # type: ignore[attr-defined]
_new_parameter = torch.nn.Parameter.__new__
_made: dict[type, type] = {}


def install(patches: Patches) -> None:
    """Replace the ways to give a tensor a class."""
    patches.functions(Tensor, "", as_subclass)
    patches.set(Tensor, "__new__", new)
    patches.set(Tensor, "_make_subclass", staticmethod(make_subclass))
    patches.set(torch.nn.Parameter, "__new__", new_parameter)
    for kinds in (of_optimizers, of_foreach):  # what may be worked on in lists of tensors, as optimizers do on GPUs
        kinds.append(VirtualTensor)  # type: ignore[arg-type]
        patches.on_restore(functools.partial(kinds.remove, VirtualTensor))  # type: ignore[arg-type]


def as_subclass(self: Tensor, cls: type) -> Any:
    """`x.as_subclass(cls)`: the same tensor, tracked by autograd, as an instance of `cls`."""
    if not is_virtual(self):
        return _as_subclass(self, user_class(cls))
    with torch._C.DisableTorchFunctionSubclass():
        made = torch.ops.aten.alias(self)
    made.__class__ = virtual_class(cls)
    return made


# The names of the parameters are PyTorch's: its compiler compares signatures when it is imported.
def make_subclass(cls: Any, data: Tensor, requires_grad: bool = False, **kwargs: Any) -> Any:
    """`torch.Tensor._make_subclass`: like `as_subclass`, but detached."""
    requires_grad = kwargs.pop("require_grad", requires_grad)
    if not is_virtual(data):
        return _make_subclass(user_class(cls), data, requires_grad, **kwargs)
    made = as_subclass(data.detach(), cls)
    with torch._C.DisableTorchFunctionSubclass():  # the class may refuse what it does not know, and is not asked
        return made.requires_grad_(requires_grad)


def new(cls: type, *args: Any, **kwargs: Any) -> Any:
    """`Image(x)`, `Image([1.0])`, `Image(2, 3)`; a tensor that passed through factories.py has its class already."""
    if cls is Tensor:
        return _new(cls, *args, **kwargs)
    if cls is VirtualTensor and ("requires_grad" in kwargs or isinstance(args[-1] if args[1:] else None, bool)):
        return torch.nn.Parameter(*args, **kwargs)  # from `type(p)(...)`, which on real GPUs is that class
    return as_subclass(args[0] if args and is_virtual(args[0]) else _new(Tensor, *args, **kwargs), cls)


new.__signature__ = inspect.signature(make_subclass)  # type: ignore[attr-defined]  # for the compiler, again


@functools.wraps(_new_parameter)
def new_parameter(cls: type, data: Any = None, requires_grad: bool = True) -> Any:
    """`Parameter(x)`; a subclass of Parameter stays one, which PyTorch sees to for plain tensors alone."""
    if cls is torch.nn.Parameter or not is_virtual(data):
        return _new_parameter(user_class(cls), data, requires_grad)
    return make_subclass(cls, data, requires_grad)


def virtual_class(kind: type) -> type:
    """The class of an instance of `kind` on a virtual GPU."""
    if kind in KINDS or kind in (Tensor, torch.nn.Parameter, torch.nn.Buffer):
        return kind if kind in KINDS else VirtualTensor
    if kind not in _made:
        # Its own methods first, then those of virtual tensors; functions of torch treat it as they treat `kind`.
        meta = type(kind.__name__, (type(VirtualTensor), type(kind)), {})
        made: Any = meta(kind.__name__, (kind, VirtualTensor), {"user_class": kind, "__module__": kind.__module__})
        made.__torch_function__ = inspect.getattr_static(kind, "__torch_function__")
        if kind.__reduce_ex__ is torch.nn.Parameter.__reduce_ex__:  # it knows nothing of the host
            made.__reduce_ex__ = VirtualTensor.__reduce_ex__
        _made[kind] = made
        KINDS.add(made)
    return _made[kind]


def user_class(kind: type) -> type:
    """The class of an instance of `kind` on the CPU."""
    return kind.user_class if kind in KINDS else kind  # type: ignore[attr-defined]
