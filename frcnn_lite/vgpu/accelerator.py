"""`torch.accelerator`: the device-neutral face of the same devices, which `torch.nn.parallel` uses since 2.13."""

from __future__ import annotations

from typing import Any

import torch

from frcnn_lite.vgpu import devices, memory, streams
from frcnn_lite.vgpu.patches import Patches

_CUDA = torch.device("cuda")


def install(patches: Patches) -> None:
    """Replace what `torch.accelerator` asks of C++."""

    def getAccelerator() -> torch.device:
        return _CUDA

    def getDeviceIndex() -> int:
        return devices.current()

    def setDeviceIndex(ordinal: int) -> None:
        if ordinal >= 0:
            devices.set_current(ordinal)

    def exchangeDevice(ordinal: int) -> int:
        return devices.exchange(ordinal)

    def maybeExchangeDevice(ordinal: int) -> int:
        return devices.exchange(ordinal)

    def getStream(ordinal: int) -> streams.Stream:
        return streams.current(devices.check(ordinal))

    def setStream(stream: streams.Stream) -> None:
        streams.make_current(stream)

    def synchronizeDevice(ordinal: int) -> None:
        devices.check(ordinal)

    def isAllocatorInitialized() -> bool:
        return True

    def emptyCache() -> None:
        memory.empty_cache()

    def emptyHostCache() -> None:
        return None

    def getDeviceStats(ordinal: int) -> dict[str, Any]:
        return memory.statistics(devices.check(ordinal))

    def resetPeakStats(ordinal: int) -> None:
        memory.reset_peak(devices.check(ordinal))

    def resetAccumulatedStats(ordinal: int) -> None:
        devices.check(ordinal)

    def getMemoryInfo(ordinal: int) -> tuple[int, int]:
        return memory.free_and_total(devices.check(ordinal))

    for function in [f for f in locals().values() if callable(f)]:
        if function is not patches:
            patches.set(torch._C, f"_accelerator_{function.__name__}", function)
    patches.set(torch._C, "_get_accelerator", lambda check=None: _CUDA)
