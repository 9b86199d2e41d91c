"""What virtual GPUs do not have: these names of `torch.cuda` and `torch.accelerator` refuse, and say that they do."""

from __future__ import annotations

import functools
from typing import Any, NoReturn

import torch

from vgpu import record
from vgpu.patches import Patches

_CUDA = (
    # graphs
    "CUDAGraph",
    "export_dot",
    "export_graph_data",
    "graph",
    "graph_pool_handle",
    "make_graphed_callables",
    # the blocks of the allocator, and the one for pinned memory of the host
    "CUDAPluggableAllocator",
    "MemPool",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "caching_allocator_enable",
    "change_current_allocator",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "memory_snapshot",
    "reset_accumulated_host_memory_stats",
    "reset_peak_host_memory_stats",
    "use_mem_pool",
    # the libraries of CUDA, and streams made by them
    "ExternalStream",
    "GreenContext",
    "check_error",
    "cudart",
    "current_blas_handle",
    "current_solver_handle",
    "get_stream_from_external",
    # what the driver measures
    "clock_rate",
    "device_memory_used",
    "list_gpu_processes",
    "memory_usage",
    "power_draw",
    "temperature",
    "utilization",
    # storages by type
    "BFloat16Storage",
    "BoolStorage",
    "ByteStorage",
    "CharStorage",
    "ComplexDoubleStorage",
    "ComplexFloatStorage",
    "DoubleStorage",
    "FloatStorage",
    "HalfStorage",
    "IntStorage",
    "LongStorage",
    "ShortStorage",
)
_ACCELERATOR = ("Graph", "get_device_capability")


class _Markers:
    """In the place of the NVTX library: marks for a profiler that is not there."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args: 0


def install(patches: Patches) -> None:
    """Replace the names by refusals of their own kind, so that `isinstance` goes on working with the classes."""
    for owner, names in ((torch.cuda, _CUDA), (torch.accelerator, _ACCELERATOR)):
        for name in names:
            original = getattr(owner, name, None)
            if original is not None:  # not every version has every name, and what it lacks need not be refused
                patches.set(owner, name, _refusal(f"{owner.__name__}.{name}", original))
    patches.set(torch.cuda.nvtx, "_nvtx", _Markers())


def _refusal(name: str, original: Any) -> Any:
    @functools.wraps(original, updated=() if isinstance(original, type) else ("__dict__",))
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        record.write(record.NOT_SIMULATED, name)
        raise NotImplementedError(f"{name} is not simulated by virtual GPUs")

    return type(original.__name__, (), {"__new__": refuse}) if isinstance(original, type) else refuse
