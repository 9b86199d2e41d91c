"""What virtual GPUs do not have: the names that PyTorch has for it refuse, and say what is not simulated."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NoReturn

import torch

from vgpu.base import errors, record
from vgpu.base.patches import Patches

_CUDA = (
    # what CUDA knows of the nodes of a graph
    "export_dot",
    "export_graph_data",
    # other allocators than PyTorch's, and what it has by address
    "CUDAPluggableAllocator",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "caching_allocator_enable",
    "change_current_allocator",
    # the libraries of CUDA
    "GreenContext",
    "current_blas_handle",
    "current_solver_handle",
    # what the driver measures
    "clock_rate",
    "memory_usage",
    "power_draw",
    "temperature",
    "utilization",
)
# Kernels that a program writes itself.
_KERNELS = ("_compile_kernel",)
_SYMMETRIC = ("empty", "rendezvous", "get_symm_mem_workspace", "set_backend")
_ACCELERATOR = ("Graph", "get_device_capability")
# TensorPipe would look for the devices of its maps and for their streams.
_RPC = ("init_rpc",)


class _Markers:
    """In the place of the NVTX library: marks for a profiler that is not there."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args: 0


def install(patches: Patches) -> None:
    """Replace the names by refusals of their own kind, so that `isinstance` goes on working with the classes."""
    refuse = functools.partial(_refuse, patches)
    refuse(torch.cuda, *_CUDA, *_KERNELS)
    refuse(torch.accelerator, *_ACCELERATOR)
    patches.set(torch.cuda.nvtx, "_nvtx", _Markers())
    patches.set(torch.cuda.jiterator._JittedFunction, "__call__", _refuse_to_jiterate)
    patches.when_imported("torch.distributed._symmetric_memory", lambda module: refuse(module, *_SYMMETRIC))
    symmetric = getattr(getattr(torch._C, "_distributed_c10d", None), "_SymmetricMemory", None)
    if symmetric is not None:  # builds without torch.distributed, and some others, lack it
        patches.set(symmetric, "has_multicast_support", staticmethod(lambda kind, ordinal: False))
    patches.when_imported("torch.distributed.rpc", lambda module: refuse(module, *_RPC))
    patches.set(torch.futures.Future, "__init__", _without_devices(torch.futures.Future.__init__))
    patches.when_imported("torch.utils.cpp_extension", functools.partial(_install_extensions, patches))
    patches.when_imported("torch.cuda._sanitizer", functools.partial(_refuse_sanitizer, patches))


def _refuse(patches: Patches, owner: Any, *names: str) -> None:
    for name in names:
        original = getattr(owner, name, None)
        if original is not None:  # not every version has every name, and what it lacks need not be refused
            patches.set(owner, name, _refusal(f"{owner.__name__}.{name}", original))


def _without_devices(make: Callable) -> Callable:
    """Refuse futures with devices, whose C++ would record events of CUDA; those without go on as they are."""

    @functools.wraps(make)
    def __init__(self: Any, *, devices: list | None = None) -> None:
        if devices:
            raise errors.not_simulated("torch.futures.Future(devices=...)")
        make(self)

    return __init__


def _refuse_sanitizer(patches: Patches, module: Any) -> None:
    """Refuse CUDA's sanitizer: it learns of no stream and no event here, so it would call correct programs racy."""

    def enable(self: Any) -> NoReturn:
        raise errors.not_simulated("what torch.cuda._sanitizer looks at: streams, events and the lives of tensors")

    if module.cuda_sanitizer.enabled:  # by TORCH_CUDA_SANITIZER, while torch was imported
        enable(module.cuda_sanitizer)
    patches.set(module.CUDASanitizer, "enable", enable)


def _refuse_to_jiterate(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Refuse to run a kernel of `torch.cuda.jiterator`.

    PyTorch, too, compiles it at its first call. Its table of operators makes such kernels while it is imported, but
    runs none of them.
    """
    raise errors.not_simulated(f"kernels of torch.cuda.jiterator ({self.kernel_name})")


def _install_extensions(patches: Patches, extensions: Any) -> None:
    """Refuse to compile kernels in CUDA C++ on the fly; extensions for the CPU are compiled as ever."""
    compile_now = extensions._jit_compile
    signature = inspect.signature(compile_now)

    @functools.wraps(compile_now)
    def compile_unless_cuda(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        if given["with_cuda"] or any(str(source).endswith((".cu", ".cuh")) for source in given["sources"]):
            raise errors.not_simulated(f"custom CUDA kernels (the extension {given['name']!r})")
        return compile_now(*args, **kwargs)

    patches.set(extensions, "_jit_compile", compile_unless_cuda)


def _refusal(name: str, original: Any) -> Any:
    """A refusal of the name, of the kind that `original` is."""

    @functools.wraps(original, updated=() if isinstance(original, type) else ("__dict__",))
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        record.write(record.NOT_SIMULATED, name)
        raise NotImplementedError(f"{name} is not simulated by virtual GPUs")

    if not isinstance(original, type):
        return refuse
    # A program may ask whether the class has a method, and so whether PyTorch is new enough.
    methods = {n: _refusal(f"{name}.{n}", getattr(original, n, refuse)) for n in _methods(original)}
    return type(original.__name__, (), {**methods, "__new__": refuse})


def _methods(kind: type) -> list[str]:
    """The public methods of a class."""
    return [name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))]
