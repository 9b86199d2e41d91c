"""The tensor that lives on a virtual GPU: a subclass whose values are those of a CPU tensor sharing its storage."""

from __future__ import annotations

import copy
import copyreg
import operator
from collections.abc import Callable
from typing import Any, ClassVar, TypeGuard

import torch

from vgpu.base import errors
from vgpu.machine import contexts, devices, memory, waiting
from vgpu.tensors import storages

_make_subclass = torch.Tensor._make_subclass
_device_query = torch.ops.prim.device.default


class _Kind(type(torch.Tensor)):  # type: ignore[misc]
    """Lets `isinstance(x, type(y))` hold for every tensor x and virtual y, as it does for tensors of real GPUs."""

    user_class: type

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.user_class)


class VirtualTensor(torch.Tensor, metaclass=_Kind):
    """A tensor on a virtual GPU.

    `_host` is a plain CPU tensor over the same storage, which the CPU kernels work on; `_ordinal` is k of `cuda:k`.
    Python reads `device` below and sees `cuda:k`; C++ asks `__torch_dispatch__` and gets `cpu:64+k` (see devices.py).
    Every other operator goes to `run_operator`, which dispatch.py fills in.
    """

    _host: torch.Tensor
    _ordinal: int
    user_class: ClassVar[type] = torch.Tensor  # what an instance is where it lies on the CPU
    run_operator: ClassVar[Callable[[Any, tuple, dict | None], Any]]

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if func is _device_query:
            return devices.INTERNAL[args[0]._ordinal]
        if len(types) > 1 and not KINDS.issuperset(types):
            return NotImplemented  # a wrapper takes part, as DTensor is one: it knows how to reach the tensors inside
        return cls.run_operator(func, args, kwargs)

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """`cuda:k`."""
        return devices.PUBLIC[self._ordinal]

    is_cuda = property(lambda self: True)
    is_cpu = property(lambda self: False)

    def get_device(self) -> int:
        """k of `cuda:k`."""
        return self._ordinal

    def cpu(self, memory_format: torch.memory_format = torch.preserve_format) -> torch.Tensor:
        """A copy on the CPU, tracked by autograd."""
        return self.to("cpu", memory_format=memory_format)

    def numpy(self, *, force: bool = False) -> Any:
        """The values as an array, if `force` allows a copy to the CPU; else TypeError, as for tensors of real GPUs."""
        if not force:
            raise errors.not_numpy(self.device)
        return self.detach().cpu().numpy(force=True)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise errors.not_numpy(self.device)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self.dim() == 0 else object.__format__(self, spec)

    def tolist(self) -> Any:
        """The values as nested lists of numbers."""
        return self.detach().cpu().tolist()

    def is_pinned(self, device: Any = None) -> bool:
        """False: only memory of the host can be pinned."""
        return False

    def pin_memory(self, device: Any = None) -> torch.Tensor:
        """Raise what PyTorch raises: only memory of the host can be pinned."""
        raise RuntimeError(f"cannot pin '{errors.tensor_type(self)}' only dense CPU tensors can be pinned")

    def record_stream(self, stream: Any) -> None:
        """Streams run in order here, so no memory is ever reused too early."""

    def share_memory_(self) -> VirtualTensor:
        """The tensor itself: memory of GPUs can be shared as it is."""
        return self

    def is_shared(self) -> bool:
        """True, as for every tensor on a GPU."""
        return True

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        text = _text(self)
        return f"Parameter containing:\n{text}" if getattr(self, "_is_param", False) else text

    def __deepcopy__(self, memo: dict[int, Any]) -> VirtualTensor:
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            return super().__deepcopy__(memo)  # refuses
        if getattr(self, "_is_param", False):  # as nn.Parameter does it: without gradient, hooks and attributes
            memo[id(self)] = made = torch.nn.Parameter(self.detach().clone(), self.requires_grad)
            return made  # type: ignore[return-value]
        # Copied through its storage, so that two views of one storage stay two views of one storage.
        with storages.as_hosts():
            host = copy.deepcopy(self._host, memo)
        twin = wrap(host, self._ordinal)
        twin.__class__ = type(self)
        memo[id(self)] = twin
        twin.__dict__.update(copy.deepcopy(_attributes(self), memo))
        twin.requires_grad_(self.requires_grad)
        if self.grad is not None:
            twin.grad = copy.deepcopy(self.grad, memo)
        return twin

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle as a tensor on `cuda:k` is pickled: a plain tensor over a storage whose location is `cuda:k`.

        What a program has put on the tensor goes along, as it does in `Tensor.__reduce_ex__` and `Parameter`'s.
        """
        state = _attributes(self)
        if isinstance(self, torch.nn.Parameter):
            parts: tuple = (self.detach(), self.requires_grad, {})  # PyTorch keeps the class of no subclass, either
            if not state:
                return torch._utils._rebuild_parameter, parts
            return torch._utils._rebuild_parameter_with_state, (*parts, state)
        plain = self._host.detach().requires_grad_(self.requires_grad).__reduce_ex__(protocol)
        if type(self) is VirtualTensor and not state:
            return plain
        return torch._tensor._rebuild_from_type_v2, (plain[0], type(self).user_class, plain[1], state)  # type: ignore[attr-defined]


# What a program prints and compares is the name of a tensor's class, which is this on a GPU.
VirtualTensor.__module__, VirtualTensor.__name__, VirtualTensor.__qualname__ = "torch", "Tensor", "Tensor"
copyreg.pickle(_Kind, lambda kind: (operator.itemgetter(0), ((kind.user_class,),)))  # type: ignore[attr-defined]


def _attributes(tensor: VirtualTensor) -> dict[str, Any]:
    """What a program has put on a tensor."""
    return {k: v for k, v in tensor.__dict__.items() if k not in ("_host", "_ordinal", "_is_param")}


KINDS: set[type] = {VirtualTensor}  # and the classes of subclasses.py


def is_virtual(value: object) -> TypeGuard[VirtualTensor]:
    """True for tensors on virtual GPUs, and only for them."""
    return type(value) in KINDS


def wrap(host: torch.Tensor, ordinal: int) -> VirtualTensor:
    """Put a CPU tensor on virtual GPU `ordinal`, without a copy, and count its memory there."""
    if host.layout is torch.strided:
        memory.track(host.untyped_storage(), ordinal)
    elif host.layout is not torch.sparse_coo:
        raise errors.not_simulated(f"tensors of layout {host.layout}")
    return view(host, ordinal)


def view(host: torch.Tensor, ordinal: int) -> VirtualTensor:
    """Like `wrap`, for a tensor whose storage is counted already."""
    tensor = _make_subclass(VirtualTensor, host, False, dispatch_device=True)
    tensor._host = host
    tensor._ordinal = ordinal
    return tensor


def _text(tensor: VirtualTensor) -> str:
    """`repr` of a tensor on a GPU: the values of the host tensor, then the suffixes PyTorch prints."""
    if contexts.watched:
        waiting.wait(tensor._ordinal)
    host = tensor._host
    printed = torch._tensor_str
    suffixes = [f"device='{tensor.device}'"]
    if host.layout != torch.strided:
        return repr(host)[:-1] + f", {suffixes[0]})"
    if host.numel() == 0 and host.dim() != 1:
        suffixes.append(f"size={tuple(host.shape)}")
    implied = (torch.get_default_dtype(), torch.int64, torch.bool, torch.complex64)
    if host.dtype not in implied or (host.numel() == 0 and host.dtype != torch.get_default_dtype()):
        suffixes.append(f"dtype={host.dtype}")
    if tensor.grad_fn is not None:
        name = type(tensor.grad_fn).__name__
        suffixes.append(f"grad_fn=<{'CppFunction' if name == 'CppFunction' else name}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    prefix = "tensor(" if type(tensor) is VirtualTensor else f"{type(tensor).__name__}("
    body = "[]" if host.numel() == 0 else printed._tensor_str(host.resolve_conj().resolve_neg(), len(prefix))
    return printed._add_suffixes(prefix + body, suffixes, len(prefix), force_newline=False)
