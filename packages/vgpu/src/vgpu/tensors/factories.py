"""Factories: every `torch.zeros(..., device=...)` ends in `empty`, caught here at the BackendSelect key.

A dispatch key reaches every thread, which a TorchDispatchMode would not: nn.DataParallel runs user code in threads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._C import DispatchKey, DispatchKeySet
from torch.overrides import handle_torch_function
from torch.utils._device import _device_constructors

from vgpu.base import errors
from vgpu.base.patches import Patches
from vgpu.hardware import kernels
from vgpu.machine import captures, contexts, devices, memory, pinned, waiting
from vgpu.tensors import tensor

_CPU_KEYS = DispatchKeySet(DispatchKey.CPU)
# These ask C++ for the index of a bare "cuda", or CUDA itself, before any hook could.
_CONSTRUCTORS: tuple[tuple[Any, str], ...] = (
    # from data
    (torch, "tensor"),
    (torch, "as_tensor"),
    (torch, "asarray"),
    (torch.Tensor, "new_tensor"),
    # from data of layouts of their own
    (torch, "sparse_coo_tensor"),
    (torch, "sparse_csr_tensor"),
    (torch, "sparse_csc_tensor"),
    (torch, "sparse_bsr_tensor"),
    (torch, "sparse_bsc_tensor"),
    (torch, "sparse_compressed_tensor"),
    (torch.nested._nested, "nested_tensor"),  # type: ignore[attr-defined]
    # of subclasses that are not dense tensors themselves
    (torch.Tensor, "_make_wrapper_subclass"),
)


def install(patches: Patches) -> None:
    """Catch the factories and constructors."""
    known = _device_constructors()  # a cached set; set_default_device acts on its members
    patches.on_restore(_device_constructors.cache_clear)
    for owner, name in _CONSTRUCTORS:
        located = _located(getattr(owner, name))
        if getattr(owner, name) in known:
            known.add(located)
        if name == "_make_wrapper_subclass":
            patches.set(owner, name, staticmethod(located))
        else:
            patches.operator(owner, name, located)
    aten = torch.ops.aten
    for op in (
        aten.empty.memory_format,
        aten.empty_strided.default,
        aten._efficientzerotensor.default,
        # Ranges end in `empty`, too, but then in a resize, which costs more than all else.
        aten.arange.default,
        aten.arange.start,
        aten.arange.start_step,
        # These do not end in `empty`.
        aten.tril_indices.default,
        aten.triu_indices.default,
    ):
        patches.kernel(op, _hook(op), "BackendSelect")


def _located(constructor: Callable) -> Callable:
    @functools.wraps(constructor)
    def located(*args: Any, **kwargs: Any) -> Any:
        if torch._C._is_torch_function_mode_enabled():  # torch.export recognises `torch.tensor` by identity
            return handle_torch_function(located, (), *args, **kwargs)
        if constructor.__name__ == "_make_wrapper_subclass":  # its device may stand among fifteen others
            args = tuple(devices.internal(a) if isinstance(a, torch.device) else a for a in args)
        device = kwargs.get("device")
        if device is not None:
            kwargs["device"] = devices.internal(device)
            if constructor.__name__ == "nested_tensor" and devices.is_internal(kwargs["device"]):
                raise errors.not_simulated("nested tensors")
        elif constructor.__name__ == "new_tensor" and args[0].is_cuda:
            kwargs["device"] = devices.internal(args[0].device)
        return constructor(*args, **kwargs)

    return located


def _hook(op: torch._ops.OpOverload) -> Callable:
    redispatch = op._handle.redispatch_boxed  # straight, for operators make their results here, too
    of_indices = "_indices" in op.name()
    cpu_keys = _CPU_KEYS.add(DispatchKey.ZeroTensor) if "zerotensor" in op.name() else _CPU_KEYS

    def factory(*args: Any, device: Any = None, layout: Any = None, pin_memory: Any = None, **kwargs: Any) -> Any:
        if device is None or (device.type == "cpu" and (device.index or 0) < devices.FIRST):
            if layout is None or layout is torch.strided:
                made = redispatch(cpu_keys, *args, **kwargs)
                return pinned.pin(made) if pin_memory else made
        else:
            ordinal = devices.ordinal_of(device)
            if ordinal is not None:
                if pin_memory:
                    raise RuntimeError(errors.NOT_PINNABLE)
                keys = cpu_keys if layout in (None, torch.strided) else _keys("cpu", layout)
                if contexts.watched:
                    _say(ordinal)
                asked = kwargs.get("dtype")
                if of_indices and asked is not None:  # the CPU's kernel knows integers only
                    kwargs["dtype"] = torch.int64
                try:
                    made = redispatch(keys, *args, layout=layout, **kwargs)
                    made = made.to(asked) if of_indices and asked is not None else made
                except RuntimeError as error:
                    memory.raise_if_too_large(error, ordinal)
                    raise kernels.in_cudas_words(error, op._schema.name.removeprefix("aten::")) from None
                virtual = tensor.wrap(made, ordinal)
                if memory.witness is not None:
                    memory.witness.made(op, virtual)
                return virtual
        keys = _keys(device.type if device is not None else "cpu", layout)
        return redispatch(keys, *args, layout=layout, device=device, pin_memory=pin_memory, **kwargs)

    return factory


def _say(ordinal: int) -> None:
    """Say that a tensor is made on a device, and whether somebody waits for that.

    C++ makes tensors of the numbers that a program gives it with Python's dispatch switched off. They are copied from
    the host, which waits for it.
    """
    contexts.launch(ordinal)
    if torch._C._dispatch_tls_is_dispatch_key_excluded(DispatchKey.Python):
        captures.forbid_pageable()
        waiting.wait(ordinal)


def _keys(device_type: str, layout: torch.layout | None) -> DispatchKeySet:
    backend = torch._C._dispatch_key_for_device(device_type)
    prefix = {torch.sparse_coo: "Sparse", torch.sparse_csr: "SparseCsr"}.get(layout, "")  # type: ignore[arg-type]
    return DispatchKeySet(getattr(DispatchKey, prefix + backend))
