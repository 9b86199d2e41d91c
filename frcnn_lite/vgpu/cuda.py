"""`torch.cuda`: its own Python code runs unchanged, upon the C++ functions it would find on an n-GPU machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from frcnn_lite.vgpu import devices, memory, streams
from frcnn_lite.vgpu.patches import Patches


class DeviceProperties(NamedTuple):
    """What `torch.cuda.get_device_properties` tells of a virtual GPU."""

    name: str = "Virtual GPU (CPU)"
    major: int = 8
    minor: int = 0
    total_memory: int = 0
    multi_processor_count: int = 1
    is_integrated: int = 0
    is_multi_gpu_board: int = 0
    max_threads_per_multi_processor: int = 2048
    warp_size: int = 32
    gcnArchName: str = "virtual"


def install(patches: Patches) -> None:
    """Replace what `torch.cuda` asks of C++."""
    cuda, c = torch.cuda, torch._C
    for function in _device_functions() + _memory_functions() + _stream_functions():
        patches.set(c, function.__name__, function)
    owner = os.getpid()
    patches.set(cuda, "_is_in_bad_fork", lambda: os.getpid() != owner)
    patches.set(cuda, "_initialized", False)
    patches.set(cuda, "_queued_calls", [])
    patches.set(cuda, "_cached_device_count", None)
    patches.set(cuda, "_cudart", object())
    patches.set(cuda, "_device_count_nvml", lambda: -1)
    patches.set(cuda, "_exchange_device", devices.exchange)
    patches.set(cuda, "_maybe_exchange_device", devices.exchange)
    patches.set(cuda, "_get_device_properties", lambda ordinal: DeviceProperties(total_memory=memory.capacity()))
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
        patches.set(module, "mem_get_info", _mem_get_info)
    patches.set(cuda.nccl, "is_available", lambda tensors: False)
    # cuDNN would be asked for its packed RNN weights and would look for a driver.
    patches.set(torch.backends.cudnn, "is_acceptable", lambda tensor: False)


def _ordinal(device: Any) -> int:
    ordinal = devices.current() if device is None else devices.ordinal_of(device)
    if ordinal is None:
        raise ValueError(f"Expected a cuda device, but got: {device}")
    return ordinal


def _mem_get_info(device: Any = None) -> tuple[int, int]:
    return memory.free_and_total(_ordinal(device))


def _device_functions() -> list[Callable]:
    def _cuda_init() -> None:
        devices.initialise()

    def _cuda_getDeviceCount() -> int:
        return devices.count()

    def _cuda_getDevice() -> int:
        return devices.current()

    def _cuda_setDevice(ordinal: int) -> None:
        devices.set_current(ordinal)

    def _cuda_exchangeDevice(ordinal: int) -> int:
        return devices.exchange(ordinal)

    def _cuda_maybeExchangeDevice(ordinal: int) -> int:
        return devices.exchange(ordinal)

    def _cuda_synchronize() -> None:
        return None

    def _cuda_ipc_collect() -> None:
        return None

    def _cuda_canDeviceAccessPeer(device: int, peer: int) -> bool:
        return device != peer

    def _cuda_getArchFlags() -> None:
        return None

    def _cuda_set_sync_debug_mode(mode: int) -> None:
        return None

    def _cuda_get_sync_debug_mode() -> int:
        return 0

    return [f for f in locals().values() if callable(f)]


def _memory_functions() -> list[Callable]:
    def _cuda_memoryStats(ordinal: int) -> dict:
        return memory.statistics(devices.check(ordinal))

    def _cuda_resetPeakMemoryStats(ordinal: int) -> None:
        memory.reset_peak(devices.check(ordinal))

    def _cuda_resetAccumulatedMemoryStats(ordinal: int) -> None:
        devices.check(ordinal)

    def _cuda_emptyCache() -> None:
        memory.empty_cache()

    def _cuda_setMemoryFraction(fraction: float, ordinal: int) -> None:
        memory.set_fraction(devices.check(ordinal), fraction)

    def _cuda_getMemoryFraction(ordinal: int) -> float:
        return memory.fraction(devices.check(ordinal))

    return [f for f in locals().values() if callable(f)]


def _stream_functions() -> list[Callable]:
    def _cuda_isCurrentStreamCapturing() -> bool:
        return False

    def _cuda_getCurrentRawStream(ordinal: int) -> int:
        return streams.current(ordinal).stream_id

    def _cuda_setStream(stream_id: int, device_index: int, device_type: int) -> None:
        streams.make_current(streams.Stream(device=device_index, stream_id=stream_id))

    return [f for f in locals().values() if callable(f)]
