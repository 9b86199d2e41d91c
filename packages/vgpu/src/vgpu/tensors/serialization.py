"""`torch.save` and `torch.load`: storages carry their location `cuda:k` into files and back out."""

from __future__ import annotations

import torch

from vgpu.base.patches import Patches
from vgpu.machine import devices, memory, waiting
from vgpu.tensors import storages

_PRIORITY = 5  # before PyTorch's own entries, which start at 10


def install(patches: Patches) -> None:
    """Teach serialization the location of a virtual storage, and make loaded tensors virtual again."""
    registry = torch.serialization._package_registry
    patches.set(torch.serialization, "_package_registry", sorted([*registry, (_PRIORITY, _tag, _place)], key=_first))


def _first(entry: tuple) -> int:
    return entry[0]


def _tag(storage: torch.UntypedStorage) -> str | None:
    ordinal = memory.ordinal_of(storage)
    if ordinal is None:
        return None
    waiting.wait(ordinal)  # whoever asks is about to copy it to the host
    return f"cuda:{ordinal}"


def _place(storage: torch.UntypedStorage, location: str) -> torch.UntypedStorage | None:
    if not location.startswith("cuda"):
        return None
    device = torch.device(location)
    if device.index is not None and device.index >= devices.count():
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {device.index} but torch.cuda.device_count() is "
            f"{devices.count()}. Please use torch.load with map_location to map your storages to an existing device."
        )
    return storages.cuda(storage, device)
