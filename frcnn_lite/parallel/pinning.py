"""Pinning: every tensor of a computation on one device, found out before a kernel does, and in words that name it.

Nothing here chooses a device. A replica's device is that of its weights and inputs; whatever is made on the way follows
one of them.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    import numpy as np


class LeftBehind(NamedTuple):
    """A value that does not follow its module to a device: `name` as one would write it, what it is, what to do."""

    name: str
    what: str
    instead: str


def same_device(**tensors: Tensor) -> torch.device:
    """The device of all `tensors`, given by name: `same_device(features=features, rois=rois)`.

    For kernels of one's own: an address on another GPU is an illegal access or, between peers, a slow success
    (longcw/RoIAlign.pytorch issue 8, 2018; open-mmlab/mmdetection issue 1608, 2019).

    Raises ValueError that names every tensor with its device when they differ, or when none is given.
    """
    if not tensors:
        raise ValueError("`tensors` is empty; give at least one, by name")
    places = {name: tensor.device for name, tensor in tensors.items()}
    if len(set(places.values())) > 1:
        told = ", ".join(f"{name} on {device}" for name, device in places.items())
        raise ValueError(f"`tensors` must be on one device, got {told}")
    return next(iter(places.values()))


def from_numpy(array: np.ndarray, like: Tensor) -> Tensor:
    """An array as a tensor beside another one.

    In place of a bare `.cuda()`, which goes to whatever device is current in the calling thread.

    Args:
        array: floats, integers or bools.
        like: gives the device, and floats their dtype; integers and bools keep their own.

    Returns:
        A tensor that shares the memory of `array` where `like` is a CPU tensor of the same dtype.
    """
    tensor = torch.from_numpy(array)
    return tensor.to(like.device, like.dtype if tensor.is_floating_point() else tensor.dtype)


def check_devices(module: nn.Module) -> list[LeftBehind]:
    """Find what `.to(device)`, and so `nn.parallel.replicate`, would leave where it is; an empty list is good.

    Parameters and buffers away from the first one's device; in plain attributes, lists, dicts and tuples: tensors, its
    own buffers and weights, too, modules, and functions that keep a module (pytorch issue 30324, 2019).
    """
    placed = [*module.named_parameters(), *module.named_buffers()]
    found = [
        LeftBehind(name, f"on {tensor.device}, {placed[0][0]} on {placed[0][1].device}", "module.to(device)")
        for name, tensor in placed
        if tensor.device != placed[0][1].device
    ]
    for path, part in module.named_modules():
        for name, value in vars(part).items():
            if name not in _OF_EVERY_MODULE:
                found += _kept(f"{path}.{name}".lstrip("."), value)
    return found


_OF_EVERY_MODULE = frozenset({*vars(nn.Module()), "_flat_weights"})  # a list that recurrent layers renew themselves


def _kept(name: str, value: Any) -> Iterator[LeftBehind]:
    """The tensors and modules in an attribute, and in the containers there."""
    if isinstance(value, Tensor):
        yield LeftBehind(name, f"tensor on {value.device}", "register_buffer(..., persistent=False), read by that name")
    elif isinstance(value, nn.Module):
        yield LeftBehind(name, f"module {type(value).__name__} in a container", "nn.ModuleList or nn.ModuleDict")
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _kept(f"{name}[{key!r}]", part)
    elif isinstance(value, list | tuple):
        for k, part in enumerate(value):
            yield from _kept(f"{name}[{k}]", part)
    elif any(isinstance(kept, nn.Module) for kept in _held_by(value)):
        yield LeftBehind(name, "function that keeps a module", "a method, called as self.method(...)")


def _held_by(value: Any) -> list[Any]:
    """Objects that a function carries with it: what it is bound to, its arguments, the cells of its closure."""
    if isinstance(value, types.MethodType):
        return [value.__self__]
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values(), *_held_by(value.func)]
    cells = getattr(value, "__closure__", None) or ()
    return [cell.cell_contents for cell in cells if cell != types.CellType()]
