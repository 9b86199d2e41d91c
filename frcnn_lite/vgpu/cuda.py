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

from frcnn_lite.vgpu import devices, memory, streams
from frcnn_lite.vgpu.patches import Patches

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
    patches.set(cuda, "_initialized", False)
    patches.set(cuda, "_queued_calls", [])
    patches.set(cuda, "_cached_device_count", None)
    patches.set(cuda, "_cudart", object())
    patches.set(cuda, "_device_count_nvml", lambda: -1)
    patches.set(cuda, "_exchange_device", devices.exchange)
    patches.set(cuda, "_maybe_exchange_device", devices.exchange)
    patches.set(cuda, "_get_device_properties", _properties)
    for name, kind in (("Stream", streams.Stream), ("Event", streams.Event)):
        for module in (cuda, cuda.streams, torch):
            patches.set(module, name, kind)
    patches.set(cuda, "current_stream", lambda device=None: streams.current(_ordinal(device)))
    patches.set(cuda, "default_stream", lambda device=None: streams.default(_ordinal(device)))
    patches.set(cuda, "set_stream", lambda stream: None if stream is None else streams.make_current(stream))
    patches.set(cuda, "is_bf16_supported", lambda including_emulation=True: True)
    patches.set(cuda, "get_arch_list", list)
    patches.set(cuda, "get_allocator_backend", lambda: "native")
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
    check = devices.check
    return {
        "init": devices.initialise,
        "getDeviceCount": devices.count,
        "getDevice": devices.current,
        "setDevice": devices.set_current,
        **dict.fromkeys(("exchangeDevice", "maybeExchangeDevice"), devices.exchange),
        "canDeviceAccessPeer": lambda device, peer: device != peer,
        "synchronize": lambda: streams.synchronize(devices.current()),
        "sleep": streams.sleep,
        **dict.fromkeys(("getArchFlags", "ipc_collect", "set_sync_debug_mode"), lambda *_: None),
        "get_sync_debug_mode": lambda: 0,
        "memoryStats": lambda ordinal: memory.statistics(check(ordinal)),
        "resetPeakMemoryStats": lambda ordinal: memory.reset_peak(check(ordinal)),
        "resetAccumulatedMemoryStats": lambda ordinal: memory.reset_accumulated(check(ordinal)),
        "emptyCache": memory.empty_cache,
        "setMemoryFraction": lambda fraction, ordinal: memory.set_fraction(check(ordinal), fraction),
        "getMemoryFraction": lambda ordinal: memory.fraction(check(ordinal)),
        "isCurrentStreamCapturing": lambda: False,
        "getCurrentRawStream": lambda ordinal: streams.current(ordinal).stream_id,
        "setStream": lambda **named: streams.make_current(streams.Stream(**named)),
    }


def _accelerator_functions() -> dict[str, Callable]:
    check = devices.check
    return {
        "getAccelerator": lambda: _CUDA,
        "getDeviceIndex": devices.current,
        **dict.fromkeys(("setDeviceIndex", "exchangeDevice", "maybeExchangeDevice"), devices.exchange),
        "getStream": streams.current,
        "setStream": streams.make_current,
        "synchronizeDevice": lambda ordinal: streams.synchronize(check(ordinal)),
        "isAllocatorInitialized": lambda: True,
        "emptyCache": memory.empty_cache,
        "emptyHostCache": lambda: None,
        "getDeviceStats": lambda ordinal: memory.statistics(check(ordinal)),
        "resetPeakStats": lambda ordinal: memory.reset_peak(check(ordinal)),
        "resetAccumulatedStats": lambda ordinal: memory.reset_accumulated(check(ordinal)),
        "getMemoryInfo": lambda ordinal: memory.free_and_total(check(ordinal)),
    }
