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

from vgpu import devices, memory, streams
from vgpu.patches import Patches

_CUDA = torch.device("cuda")


def install(patches: Patches) -> None:
    """Replace what both ask of C++."""
    cuda = torch.cuda
    for name, function in _cuda_functions().items():
        patches.set(torch._C, f"_cuda_{name}", function)
    for name, function in _accelerator_functions().items():
        patches.set(torch._C, f"_accelerator_{name}", function)
    patches.set(torch._C, "_get_accelerator", lambda check=None: _CUDA)
    patches.on_restore(streams.busy.clear)
    owner = os.getpid()
    patches.set(cuda, "_is_in_bad_fork", lambda: os.getpid() != owner)
    own: dict[str, Any] = {"_initialized": False, "_queued_calls": [], "_cached_device_count": None}
    own |= {"_cudart": object(), "_device_count_nvml": lambda: -1, "_get_device_properties": _properties}
    own |= dict.fromkeys(("_exchange_device", "_maybe_exchange_device"), devices.exchange)
    own |= {"is_bf16_supported": lambda including_emulation=True: True, "get_arch_list": list}
    own |= {"get_allocator_backend": lambda: "native"}
    for name, value in own.items():
        patches.set(cuda, name, value)
    for name, kind in (("Stream", streams.Stream), ("Event", streams.Event)):
        for module in (cuda, cuda.streams, torch):
            patches.set(module, name, kind)
    patches.set(cuda, "current_stream", lambda device=None: streams.current(_ordinal(device)))
    patches.set(cuda, "default_stream", lambda device=None: streams.default(_ordinal(device)))
    patches.set(cuda, "set_stream", lambda stream: None if stream is None else streams.make_current(stream))
    for module in (cuda, cuda.graphs):
        patches.set(module, "is_current_stream_capturing", lambda: False)
    for module in (cuda, cuda.memory):
        patches.set(module, "mem_get_info", lambda device=None: memory.free_and_total(_ordinal(device)))
    patches.set(cuda.nccl, "is_available", lambda tensors: False)
    # cuDNN would be asked for its packed RNN weights and would look for a driver.
    patches.set(torch.backends.cudnn, "is_acceptable", lambda tensor: False)


def _ordinal(device: Any) -> int:
    ordinal = devices.current() if device is None else devices.ordinal_of(device)
    if ordinal is None:
        raise ValueError(f"Expected a cuda device, but got: {device}")
    return ordinal


def _properties(ordinal: int) -> SimpleNamespace:
    """What `torch.cuda.get_device_properties` tells of a virtual GPU."""
    zero = dict.fromkeys(("minor", "is_integrated", "is_multi_gpu_board", "L2_cache_size"), 0)
    threads = {"max_threads_per_multi_processor": 2048, "max_threads_per_block": 1024, "warp_size": 32}
    figures = {**zero, **threads, "multi_processor_count": 1, "total_memory": memory.capacity()}
    names = {"name": "Virtual GPU (CPU)", "gcnArchName": "virtual", "uuid": UUID(int=ordinal + 1)}
    return SimpleNamespace(**names, major=8, **figures)


def _cuda_functions() -> dict[str, Callable]:
    on_device: dict[str, Callable] = {"memoryStats": memory.statistics, "getMemoryFraction": memory.fraction}
    on_device |= {"resetPeakMemoryStats": memory.reset_peak, "resetAccumulatedMemoryStats": memory.reset_accumulated}
    return {
        "init": devices.initialise,
        "getDeviceCount": devices.count,
        "getDevice": devices.current,
        "setDevice": devices.set_current,
        "canDeviceAccessPeer": lambda device, peer: device != peer,
        "synchronize": lambda: streams.synchronize(devices.current()),
        "sleep": streams.sleep,
        "get_sync_debug_mode": lambda: 0,
        "emptyCache": memory.empty_cache,
        "setMemoryFraction": lambda fraction, ordinal: memory.set_fraction(devices.check(ordinal), fraction),
        "isCurrentStreamCapturing": lambda: False,
        "getCurrentRawStream": lambda ordinal: streams.current(ordinal).stream_id,
        "setStream": lambda **named: streams.make_current(streams.Stream(**named)),
        **dict.fromkeys(("exchangeDevice", "maybeExchangeDevice"), devices.exchange),
        **dict.fromkeys(("getArchFlags", "ipc_collect", "set_sync_debug_mode"), lambda *_: None),
        **{name: _checked(function) for name, function in on_device.items()},
    }


def _accelerator_functions() -> dict[str, Callable]:
    on_device: dict[str, Callable] = {"getDeviceStats": memory.statistics, "getMemoryInfo": memory.free_and_total}
    on_device |= {"resetPeakStats": memory.reset_peak, "resetAccumulatedStats": memory.reset_accumulated}
    return {
        "getAccelerator": lambda: _CUDA,
        "getDeviceIndex": devices.current,
        "getStream": streams.current,
        "setStream": streams.make_current,
        "synchronizeDevice": _checked(streams.synchronize),
        "isAllocatorInitialized": lambda: True,
        "emptyCache": memory.empty_cache,
        "emptyHostCache": lambda: None,
        **dict.fromkeys(("setDeviceIndex", "exchangeDevice", "maybeExchangeDevice"), devices.exchange),
        **{name: _checked(function) for name, function in on_device.items()},
    }


def _checked(function: Callable[[int], Any]) -> Callable[[int], Any]:
    return lambda ordinal: function(devices.check(ordinal))
