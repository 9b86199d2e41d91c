"""What virtual GPUs do not have: these names of `torch.cuda` and `torch.accelerator` refuse, and say that they do."""

from __future__ import annotations

import functools
from typing import Any, NoReturn

import torch

from vgpu.patches import Patches

# Graphs, the blocks of the allocator, the driver and what it measures, storages by type.
_CUDA = """
    CUDAGraph graph graph_pool_handle make_graphed_callables export_dot export_graph_data
    MemPool use_mem_pool CUDAPluggableAllocator change_current_allocator caching_allocator_alloc memory_snapshot
    caching_allocator_delete caching_allocator_enable host_memory_stats host_memory_stats_as_nested_dict
    reset_accumulated_host_memory_stats reset_peak_host_memory_stats
    cudart check_error current_blas_handle current_solver_handle GreenContext ExternalStream get_stream_from_external
    clock_rate device_memory_used memory_usage power_draw temperature utilization list_gpu_processes
"""
_STORAGES = "BFloat16 Bool Byte Char ComplexDouble ComplexFloat Double Float Half Int Long Short"


class _Markers:
    """In the place of the NVTX library: marks for a profiler that is not there."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args: 0


def install(patches: Patches) -> None:
    """Replace the names by refusals of their own kind, so that `isinstance` goes on working with the classes."""
    cuda = [*_CUDA.split(), *(f"{storage}Storage" for storage in _STORAGES.split())]
    for owner, names in ((torch.cuda, cuda), (torch.accelerator, ["Graph", "get_device_capability"])):
        for name in names:
            original = getattr(owner, name, None)
            if original is not None:
                patches.set(owner, name, _refusal(f"{owner.__name__}.{name}", original))
    patches.set(torch.cuda.nvtx, "_nvtx", _Markers())


def _refusal(name: str, original: Any) -> Any:
    @functools.wraps(original, updated=() if isinstance(original, type) else ("__dict__",))
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{name} is not simulated by virtual GPUs")

    return type(original.__name__, (), {"__new__": refuse}) if isinstance(original, type) else refuse
