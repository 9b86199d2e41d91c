"""`torch.save` and `torch.load`: storages carry their location `cuda:k` into files and back out."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from vgpu.base.patches import Patches
from vgpu.machine import devices, memory
from vgpu.tensors import tensor

_PRIORITY = 5  # before PyTorch's own entries, which start at 10


def install(patches: Patches) -> None:
    """Teach serialization the location of a virtual storage, and make loaded tensors virtual again."""
    registry = torch.serialization._package_registry
    patches.set(torch.serialization, "_package_registry", sorted([*registry, (_PRIORITY, _tag, _place)], key=_first))
    for name in ("_rebuild_tensor", "_rebuild_tensor_v3"):
        patches.set(torch._utils, name, _placed(getattr(torch._utils, name)))
    patches.forget(torch._weights_only_unpickler._get_allowed_globals)  # remembers the functions themselves
    patches.set(torch.UntypedStorage, "cuda", _cuda)


def _placed(rebuild: Callable) -> Callable:
    @functools.wraps(rebuild)
    def placed(*args: Any, **kwargs: Any) -> torch.Tensor:
        made = rebuild(*args, **kwargs)
        ordinal = memory.ordinal_of(made.untyped_storage())
        return made if ordinal is None else tensor.view(made.detach(), ordinal).requires_grad_(made.requires_grad)

    return placed


def _first(entry: tuple) -> int:
    return entry[0]


def _tag(storage: torch.UntypedStorage) -> str | None:
    ordinal = memory.ordinal_of(storage)
    return None if ordinal is None else f"cuda:{ordinal}"


def _place(storage: torch.UntypedStorage, location: str) -> torch.UntypedStorage | None:
    if not location.startswith("cuda"):
        return None
    device = torch.device(location)
    if device.index is not None and device.index >= devices.count():
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {device.index} but torch.cuda.device_count() is "
            f"{devices.count()}. Please use torch.load with map_location to map your storages to an existing device."
        )
    return _cuda(storage, device)


def _cuda(storage: torch.UntypedStorage, device: Any = None, non_blocking: bool = False) -> torch.UntypedStorage:
    copy = storage.clone()
    memory.track(copy, devices.current() if device is None else devices.ordinal_of(device) or 0)
    return copy
