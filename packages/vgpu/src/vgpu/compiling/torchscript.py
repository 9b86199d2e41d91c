"""TorchScript: modules move their own parameters, and come back from files to the device they were saved on.

A parameter of a script module belongs to C++, and Python sees it through a new object each time: to move it, the module
is given another one. Files name devices as C++ does, `cpu:64+k` (devices.py) or, if written on real GPUs, `cuda:k`.
"""

from __future__ import annotations

import functools
import io
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from vgpu.base.patches import Patches
from vgpu.machine import devices
from vgpu.tensors.tensor import is_virtual


def install(patches: Patches) -> None:
    """Replace how script modules move, and where they are loaded to."""
    module = torch.jit.RecursiveScriptModule
    patches.set(module, "_apply", _applied(module._apply))
    for owner in (torch.jit, torch.jit._serialization):
        patches.set(owner, "load", _placed(owner.load))


def _applied(apply: Callable) -> Callable:
    @functools.wraps(apply)
    def _apply(self: Any, function: Callable, recurse: bool = True) -> Any:
        tensors = [*self.parameters(), *self.buffers()]
        if not any(is_virtual(function(t.detach().new_empty(0))) != is_virtual(t) for t in tensors):
            return apply(self, function, recurse)  # which keeps the objects, for optimizers
        for module in self.modules() if recurse else (self,):
            for name in _names(module):
                _replace(module, name, function)
        return self

    return _apply


def _names(module: Any) -> list[str]:
    """The parameters and other tensors that a script module itself has."""
    return [*module._parameters.keys(), *module._buffers.keys()]


def _replace(module: Any, name: str, function: Callable) -> None:
    tensor = getattr(module, name)
    with torch.no_grad():
        new = function(tensor)
    if name in module._parameters:
        new = torch.nn.Parameter(new, tensor.requires_grad)
    module._c.setattr(name, new)


def _placed(load: Callable) -> Callable:
    @functools.wraps(load)
    def placed(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        location = torch.jit._serialization.validate_map_location(map_location)
        if location is not None and location.type != "cuda":
            return load(f, map_location, *args, **kwargs)
        data = Path(f).read_bytes() if isinstance(f, (str, os.PathLike)) and os.path.isfile(f) else None
        data = f.read() if data is None and hasattr(f, "read") else data
        if data is None:
            return load(f, map_location, *args, **kwargs)  # which says what is wrong with the name
        module = load(io.BytesIO(data), "cpu", *args, **kwargs)
        saved = {} if location is not None else _saved(data)
        for prefix, one in module.named_modules():
            for name in _names(one):
                ordinal = devices.ordinal_of(saved.get(f"{prefix}.{name}".lstrip("."), location))
                if ordinal is not None:
                    _replace(one, name, lambda tensor, on=devices.PUBLIC[ordinal]: tensor.to(on))
        return module

    return placed


class _Object:
    """In the place of every object of a file but its tensors."""

    def __init__(self, *_: Any) -> None:
        self.state: Any = {}

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Devices(pickle.Unpickler):
    """Reads the devices of a file's tensors, and nothing else: each tensor becomes the device it was saved on."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return dict
        return (lambda storage, *_: storage) if name.startswith("_rebuild_tensor") else _Object

    def persistent_load(self, pid: Any) -> torch.device:
        return torch.device(pid[3])


def _saved(data: bytes) -> dict[str, torch.device]:
    """The device of each tensor of a file, by its dotted name."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/data.pkl"))
        tree = _Devices(io.BytesIO(archive.read(name))).load()
    found: dict[str, torch.device] = {}

    def walk(prefix: str, thing: _Object) -> None:
        for key, value in thing.state.items() if isinstance(thing.state, dict) else ():
            if isinstance(value, torch.device):
                found[prefix + key] = value
            elif isinstance(value, _Object):
                walk(f"{prefix}{key}.", value)

    walk("", tree)
    return found
