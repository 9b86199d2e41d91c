"""`torch.cuda` and `torch.accelerator`, the device-neutral face of the same devices.

Their own Python code runs unchanged, upon the C++ functions it would find on an n-GPU machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import torch

from vgpu.base import errors
from vgpu.base.builds import WITH_CUDA
from vgpu.base.patches import Patches
from vgpu.cuda import cudart
from vgpu.machine import contexts, devices, memory, profiles, streams, waiting

_CUDA = torch.device("cuda")


def install(patches: Patches) -> None:
    """Replace what both ask of C++, what the Python of `torch.cuda` looks up by itself, and streams and events."""
    for name, function in _cuda_functions().items():
        # A build without CUDA has none of these functions; one with CUDA must have them all.
        patches.set(torch._C, f"_cuda_{name}", function, may_be_missing=not WITH_CUDA)
    for name, function in _accelerator_functions().items():
        # torch 2.11 cannot empty the cache of the host's pinned memory yet.
        patches.set(torch._C, f"_accelerator_{name}", function, may_be_missing=name == "emptyHostCache")
    patches.set(torch._C, "_get_accelerator", lambda check=None: _CUDA)
    _install_state(patches)
    _install_streams(patches)
    _install_answers(patches)
    if not WITH_CUDA:
        _install_build(patches)


def _install_state(patches: Patches) -> None:
    """Let the Python of `torch.cuda` start from the state of a process that has not used CUDA yet."""
    patches.set(torch.cuda, "_is_in_bad_fork", devices.in_bad_fork)
    patches.set(torch.cuda, "_initialized", False)
    patches.set(torch.cuda, "_queued_calls", [])
    patches.set(torch.cuda, "_cached_device_count", None)
    patches.set(torch.cuda, "_cudart", cudart.MODULE)
    patches.set(torch.cuda, "_device_count_nvml", lambda: -1)
    patches.set(torch.cuda, "_exchange_device", devices.exchange)
    # A function of its own: torch.export refuses to know one function under two names.
    patches.set(torch.cuda, "_maybe_exchange_device", lambda ordinal: devices.exchange(ordinal))
    # C++ adds this one at the first use of CUDA, in every build that has it.
    patches.set(torch.cuda, "_get_device_properties", _properties, may_be_missing=True)


def _install_streams(patches: Patches) -> None:
    """Replace the classes of streams and events under each of their names, and what finds the current stream."""
    patches.on_restore(streams.busy.clear)
    patches.on_restore(waiting.reset)
    for module in (torch, torch.cuda, torch.cuda.streams):
        patches.set(module, "Stream", streams.Stream)
        patches.set(module, "Event", streams.Event)
    for module in (torch.cuda, torch.cuda.streams):
        patches.set(module, "ExternalStream", streams.ExternalStream)
    patches.set(torch.cuda, "current_stream", lambda device=None: streams.current(_ordinal(device)))
    patches.set(torch.cuda, "default_stream", lambda device=None: streams.default(_ordinal(device)))
    patches.set(torch.cuda, "set_stream", _set_stream)


_VERSION = "13.2"  # of CUDA, for builds without it
_NCCL = (2, 30, 7)  # what torch 2.15 for CUDA 13.2 is built with


def _install_answers(patches: Patches) -> None:
    """Replace the functions of Python whose answer would come from a driver or a library of CUDA."""
    for module in (torch.cuda, torch.cuda.memory):
        patches.set(module, "mem_get_info", lambda device=None: _free_and_total(_ordinal(device)))
    patches.set(torch.cuda, "is_bf16_supported", _has_bf16)
    patches.set(torch.cuda, "get_arch_list", list)
    patches.set(torch.cuda, "device_memory_used", lambda device=None: memory.held(_ordinal(device))[1])
    for module in (torch.cuda, torch.cuda.memory):
        patches.set(module, "list_gpu_processes", _processes)
    patches.set(torch.cuda, "get_allocator_backend", lambda: "native")
    patches.set(torch.cuda.nccl, "is_available", lambda tensors: False)
    if not hasattr(torch._C, "_nccl_version"):  # builds without CUDA; torch.distributed says it beside an error
        patches.set(torch.cuda.nccl, "version", lambda: _NCCL)
    patches.set(torch.backends.cudnn, "is_acceptable", _is_for_cudnn)
    # Otherwise cuDNN would be asked for its packed RNN weights, and would look for a driver.
    patches.set(torch, "_use_cudnn_rnn_flatten_weight", lambda: False)


def _install_build(patches: Patches) -> None:
    """Let a build without CUDA say that it has it: programs take the version apart, or skip where none is built."""
    patches.set(torch.version, "cuda", _VERSION)
    patches.set(torch.backends.cuda, "is_built", lambda: True)
    # PyTorch itself has these two stand-ins for such builds, and leaves them out where `is_built` is true.
    patches.set(torch._C, "_cuda_CUDAAllocator_AllocatorState", type("AllocatorState", (), {}), may_be_missing=True)
    patches.set(torch._C, "_set_cached_tensors_enabled", lambda enabled: None, may_be_missing=True)


def _ordinal(device: Any) -> int:
    ordinal = devices.current() if device is None else devices.ordinal_of(device)
    if ordinal is None:
        raise ValueError(f"Expected a cuda device, but got: {device}")
    return ordinal


def _free_and_total(ordinal: int) -> tuple[int, int]:
    contexts.reach(ordinal)
    return memory.free_and_total(ordinal)


def _empty_cache() -> None:
    for ordinal in range(devices.count()):
        contexts.reach(ordinal)
    memory.empty_cache()


def _set_stream(stream: streams.Stream | None) -> None:
    if stream is not None:
        streams.make_current(stream)


def _has_bf16(including_emulation: bool = True) -> bool:
    """Every GPU computes with bfloat16; before capability 8.0 it does so in float32."""
    return including_emulation or profiles.current().major >= 8


def _processes(device: Any = None) -> str:
    """The processes of a GPU, which are this one as far as it knows, with what its allocator has reserved."""
    ordinal = _ordinal(device)
    reserved = memory.held(ordinal)[1]
    used = f"process {os.getpid():>10d} uses {reserved / (1 << 20):>12.3f} MB GPU memory"
    return f"GPU:{ordinal}\n{used if reserved else 'no processes are running'}"


class _Properties(SimpleNamespace):
    """In the place of `torch._C._CudaDeviceProperties`."""

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, multi_processor_count={self.multi_processor_count}, "
            f"uuid={self.uuid}, pci_bus_id={self.pci_bus_id}, pci_device_id={self.pci_device_id}, "
            f"pci_domain_id={self.pci_domain_id}, L2_cache_size={self.L2_cache_size >> 20}MB)"
        )


def _is_for_cudnn(tensor: torch.Tensor) -> bool:
    """What `torch.backends.cudnn.is_acceptable` says where there is cuDNN."""
    kinds = (torch.half, torch.float, torch.double)
    return torch.backends.cudnn.enabled and tensor.is_cuda and tensor.dtype in kinds


class _CUuuid(UUID):
    """In the place of `torch._C._CUuuid`."""


def _properties(ordinal: int) -> _Properties:
    """What `torch.cuda.get_device_properties` tells of a virtual GPU."""
    profile = profiles.current()
    return _Properties(
        name=profile.name,
        gcnArchName="virtual",
        uuid=_CUuuid(int=ordinal + 1),
        major=profile.major,
        minor=profile.minor,
        warp_size=32,
        max_threads_per_block=1024,
        max_threads_per_multi_processor=profile.max_threads_per_multi_processor,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=48 << 10,
        shared_memory_per_block_optin=profile.shared_memory_per_block_optin,
        shared_memory_per_multiprocessor=profile.shared_memory_per_multiprocessor,
        multi_processor_count=profile.multi_processor_count,
        total_memory=memory.capacity(),
        L2_cache_size=profile.L2_cache_size,
        clock_rate=profile.clock * 1000,
        memory_clock_rate=profile.memory_clock * 1000,
        memory_bus_width=profile.memory_bus_width,
        pci_bus_id=devices.physical(ordinal) + 1,
        pci_device_id=0,
        pci_domain_id=0,
        is_integrated=0,
        is_multi_gpu_board=0,
    )


def _cuda_functions() -> dict[str, Callable]:
    """The functions `torch._C._cuda_<name>`."""
    return {
        # devices
        "init": devices.initialise,
        "getDeviceCount": devices.count,
        "getDevice": devices.current,
        "setDevice": devices.set_current,
        "exchangeDevice": devices.exchange,
        "maybeExchangeDevice": devices.exchange,
        "canDeviceAccessPeer": lambda device, peer: device != peer,
        "getArchFlags": _nothing,
        # memory
        "emptyCache": _empty_cache,
        "clearCublasWorkspaces": _nothing,  # what PyTorch's tests ask for before they look for leaks
        "memoryStats": _known(memory.statistics),
        "resetPeakMemoryStats": _known(memory.reset_peak),
        "resetAccumulatedMemoryStats": _known(memory.reset_accumulated),
        "getMemoryFraction": _checked(memory.fraction),
        "setMemoryFraction": lambda fraction, ordinal: memory.set_fraction(devices.check(ordinal), fraction),
        "ipc_collect": _nothing,
        # streams
        "synchronize": lambda: streams.synchronize(devices.current()),
        "sleep": streams.sleep,
        "setStream": lambda **named: streams.make_current(streams.Stream(**named)),
        "getStreamFromExternal": lambda pointer, ordinal: (pointer, ordinal, streams.Stream.device_type),
        "getCurrentRawStream": lambda ordinal: streams.current(ordinal).stream_id,
        "get_sync_debug_mode": waiting.mode,
        "set_sync_debug_mode": waiting.set_mode,
    }


def _accelerator_functions() -> dict[str, Callable]:
    """The functions `torch._C._accelerator_<name>`."""
    return {
        # devices
        "getAccelerator": lambda: _CUDA,
        "getDeviceIndex": devices.current,
        "setDeviceIndex": devices.exchange,
        "exchangeDevice": devices.exchange,
        "maybeExchangeDevice": devices.exchange,
        # memory
        "isAllocatorInitialized": lambda: True,
        "emptyCache": _empty_cache,
        "emptyHostCache": _nothing,
        "getDeviceStats": _known(memory.statistics),
        "getMemoryInfo": _checked(_free_and_total),
        "resetPeakStats": _known(memory.reset_peak),
        "resetAccumulatedStats": _known(memory.reset_accumulated),
        # streams
        "getStream": streams.current,
        "setStream": streams.make_current,
        "synchronizeDevice": _checked(streams.synchronize),
    }


def _nothing(*_: Any) -> None:
    """What has no effect here."""


def _checked(function: Callable[[int], Any]) -> Callable[[int], Any]:
    """`function(ordinal)` for a device that exists."""
    return lambda ordinal: function(devices.check(ordinal))


def _known(function: Callable[[int], Any]) -> Callable[[int], Any]:
    """`function(ordinal)` for a device of the allocator, which has words of its own for others."""

    def of_allocator(ordinal: int) -> Any:
        if not 0 <= ordinal < devices.count():
            raise errors.invalid_argument(ordinal)
        return function(devices.check(ordinal))

    return of_allocator
