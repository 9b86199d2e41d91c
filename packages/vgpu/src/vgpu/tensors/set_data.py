"""`x.data = y` where that moves x to or from a virtual GPU.

On real hardware the C++ tensor of x takes over the memory of y (`VariableHooks::set_data` in torch/csrc/autograd/
variable.cpp). Here a tensor of a virtual GPU and one of the CPU are two kinds of C++ tensor: x gets a new one under its
Python object, and what autograd knew of the old one is handed on: hooks, gradient, and what graphs recorded before the
move will still accumulate.
"""

from __future__ import annotations

import functools
import gc
import weakref
from collections import OrderedDict
from typing import Any

import torch
from torch import Tensor
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]
from torch.utils.weak import WeakTensorKeyDictionary

from vgpu.base import errors
from vgpu.machine import devices
from vgpu.tensors import lazy, subclasses
from vgpu.tensors.tensor import VirtualTensor, is_virtual, view

# What C++ does beneath the attributes that are replaced.
_base: Any = torch._C.TensorBase
_data = _base.data
_grad = _base.grad
_base_of_view = _base._base.__get__
_owners: Any = WeakTensorKeyDictionary()  # gradients on another device than their tensor -> a reference to that tensor


def set_data(self: Tensor, new: Tensor) -> None:
    """`self.data = new`, also where that moves the tensor to or from a virtual GPU.

    Raises:
        NotImplementedError: if a graph or another tensor holds the C++ tensor of `self` and would not see the move.
    """
    if isinstance(self, UninitializedTensorMixin) and isinstance(new, UninitializedTensorMixin):
        lazy.follow(self, new)
    ours, theirs = is_virtual(self), is_virtual(new)
    if ours != theirs:
        _move(self, new)
        return
    _data.__set__(self, new)
    if ours and theirs:
        self._host, self._ordinal = new._host, new._ordinal  # type: ignore[attr-defined]


def _move(self: Tensor, new: Tensor) -> None:
    """Swap the C++ tensor under a Python object: the object stays the one that optimizers and modules hold."""
    owner = _owner(self)
    is_param = isinstance(self, torch.nn.Parameter)
    held = self._use_count() > 1  # type: ignore[attr-defined]
    if held and not (is_param or self.requires_grad or owner is not None or _held_by_views_alone(self)):
        raise errors.not_simulated(
            f"assigning .data on {new.device} to a tensor on {self.device} that is a gradient or was saved by a "
            "graph: they would keep the old data. Make a new tensor with .to() and use that instead"
        )
    fresh = _like(self, new)
    hooks = self._backward_hooks
    after = self._post_accumulate_grad_hooks  # type: ignore[attr-defined]
    if self.is_leaf and self.requires_grad and held:
        hooks = OrderedDict() if hooks is None else hooks  # one dictionary for all graphs, whenever they were recorded
    _swap(self, fresh, new)
    self._backward_hooks = hooks
    if after is not None:
        self._post_accumulate_grad_hooks = after  # type: ignore[attr-defined]
    if self.is_leaf and self.requires_grad and held:
        fresh._backward_hooks = hooks
        _grad.__set__(fresh, None)  # it went with `self`; left here, what a graph brings would be added to it once more
        fresh._post_accumulate_grad_hooks = {0: functools.partial(_hand_on, self)}  # type: ignore[attr-defined]
    if owner is not None:
        _attach(owner, self)


def _held_by_views_alone(self: Tensor) -> bool:
    """True where only views of Python hold the C++ tensor; they keep the memory that they had on real hardware, too."""
    held: Any = self._use_count  # type: ignore[attr-defined]
    others = held() - 1
    probe = self.view_as(self)  # tells how often one view holds its base, which depends on the kind of tensor
    each = held() - 1 - others
    views = sum(_base_of_view(one) is self for one in gc.get_objects() if issubclass(type(one), Tensor)) - 1
    del probe
    return others == each * views


def _like(self: Tensor, new: Tensor) -> Tensor:
    """A tensor with the memory of `new` and the place in autograd of `self`."""
    fresh = _data.__get__(new)
    if not (self.is_inference() or fresh.is_inference()):
        torch._C._autograd._unsafe_set_version_counter((fresh,), (self._version,))  # type: ignore[arg-type]
    if not self.is_leaf:
        return _Moved.apply(self, fresh)
    fresh.requires_grad_(self.requires_grad)
    if self.grad_dtype is not self.dtype:  # the user chose it
        fresh.grad_dtype = self.grad_dtype
    if self.grad is not None:
        _attach(fresh, self.grad, self)
    return fresh


class _Moved(torch.autograd.Function):
    """The result of an operator after `y.data = x` moved it. Its gradient cannot go back, as on real hardware."""

    @staticmethod
    def forward(ctx: Any, self: Tensor, fresh: Tensor) -> Tensor:
        """The new tensor, with the old one as what it was computed from."""
        ctx.place = self.device
        return fresh.view_as(fresh)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        """Raise what real hardware raises."""
        raise RuntimeError(f"invalid gradient at index 0 - expected device {ctx.place} but got {grad.device}")


def _swap(self: Tensor, fresh: Tensor, new: Tensor) -> None:
    """Exchange the C++ tensors; each Python object gets the class and the device that belong to what it has now."""
    kind = type(self)
    is_param = isinstance(self, torch.nn.Parameter)
    place: dict[str, Any] = {k: self.__dict__[k] for k in ("_host", "_ordinal") if k in self.__dict__}
    own = {k: v for k, v in self.__dict__.items() if k not in place}
    torch._C._swap_tensor_impl(self, fresh)  # type: ignore[attr-defined]
    if is_virtual(new):
        self.__dict__ = {**own, "_host": new._host, "_ordinal": new._ordinal}
        if is_param:
            self._is_param = True  # type: ignore[attr-defined]
        self.__class__ = subclasses.virtual_class(kind)
    else:
        named = is_param and kind is VirtualTensor  # a parameter of the CPU needs no mark, its class says it
        self.__dict__ = {k: v for k, v in own.items() if not (named and k == "_is_param")}
        self.__class__ = torch.nn.Parameter if named else subclasses.user_class(kind)
    # Graphs may have saved it, so what was here gets the class that fits it.
    fresh.__class__ = VirtualTensor if place else Tensor
    fresh.__dict__ = place


def _hand_on(self: Tensor, old: Tensor) -> None:
    """Accumulate in `self` what a graph from before a move has accumulated in its old C++ tensor, `old`."""
    grad = _grad.__get__(old)
    _grad.__set__(old, None)
    if not (self.is_leaf and self.requires_grad):
        return
    if self.grad is not None or torch.is_grad_enabled():
        torch.autograd.graph.get_gradient_edge(self).node(grad)  # type: ignore[operator]
        return
    _attach(self, grad)  # as it is, so that a gradient on the wrong device is met where real hardware meets it
    for hook in list((self._post_accumulate_grad_hooks or {}).values()):  # type: ignore[attr-defined]
        hook(self)


def _owner(grad: Tensor) -> Tensor | None:
    """The tensor whose gradient `grad` is, where that tensor has been moved and the gradient has not."""
    reference = _owners.pop(grad, None)
    owner = reference() if reference is not None else None
    return owner if owner is not None and _grad.__get__(owner) is grad else None


def _attach(tensor: Tensor, grad: Tensor, owner: Tensor | None = None) -> None:
    """`tensor.grad = grad` wherever the two lie, which C++ does without a look and Python's setter refuses.

    `owner` is the tensor that `tensor` is about to become, if not itself.
    """
    if tensor.device != grad.device:
        _owners[grad] = weakref.ref(tensor if owner is None else owner)
    elif (tensor.shape, tensor.dtype) == (grad.shape, grad.dtype):
        _grad.__set__(tensor, grad)
        return
    # C++ compares the two when a gradient is assigned: for that moment the tensor has the gradient's shape and dtype,
    # and one of the two says that it lies where the other does.
    data = _data.__get__(tensor)
    shape = torch.empty((), dtype=grad.dtype).expand(grad.shape)
    liar = tensor if is_virtual(tensor) else grad
    told = liar.__dict__.get("_ordinal")
    try:
        _data.__set__(tensor, view(shape, tensor._ordinal) if is_virtual(tensor) else shape)
        if is_virtual(liar):
            liar._ordinal = grad._ordinal if is_virtual(grad) and liar is tensor else devices.HOST
        _grad.__set__(tensor, grad)
    finally:
        if is_virtual(liar):
            liar._ordinal = told  # type: ignore[assignment]
        _data.__set__(tensor, data)
