"""What PyTorch knows of process groups, once for each rank where ranks are threads of one process."""

from __future__ import annotations

import gc
import types
import weakref
from typing import Any

import torch

from vgpu.base.patches import Patches
from vgpu.machine import ranks

_TRACKER = "_rng_tracker"  # with which DTensor draws; the first use of it is a collective


def install(patches: Patches) -> None:
    """Let each rank find its own groups, by name in C++ and in PyTorch's tables."""
    c10d = torch.distributed.distributed_c10d
    isolate = torch._C._distributed_c10d._set_thread_isolation_mode  # type: ignore[attr-defined]
    isolate(True)
    patches.on_restore(lambda: isolate(False))
    patches.set(c10d, "_world", _Worlds(c10d._world))
    patches.when_imported("torch.distributed.tensor._random", lambda module: _keep_trackers_apart(patches, module))


class _Worlds:
    """In the place of PyTorch's one object that holds the groups of a process."""

    def __init__(self, of_process: Any) -> None:
        vars(self)["of_process"] = of_process

    def _here(self) -> Any:
        of_process = vars(self)["of_process"]
        return ranks.own("world", lambda: _new_world(type(of_process)), of_process)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._here(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._here(), name, value)


def _new_world(kind: type) -> Any:
    """An object with all that a world keeps in tables of its module, empty and of its own."""
    described = "pg_config_info"  # is made of the others when somebody asks
    names = [name for name, value in vars(kind).items() if isinstance(value, property) and name != described]
    known = {name: getattr(kind(), name) for name in names}
    kept: dict[str, Any] = {name: value if value is None else type(value)() for name, value in known.items()}
    return type(kind.__name__, (), kept | {described: vars(kind)[described]})()


def _keep_trackers_apart(patches: Patches, module: types.ModuleType) -> None:
    before = module.__class__

    class _Module(before):  # type: ignore[misc, valid-type]
        def _mine(self) -> Any:
            of_process: dict[str, Any] = self.__dict__
            return ranks.own(_TRACKER, dict, of_process)

        _rng_tracker = property(
            lambda self: self._mine().get(_TRACKER), lambda self, tracker: self._mine().update({_TRACKER: tracker})
        )

    module.__class__ = _Module

    def put_back() -> None:
        module.__class__ = before

    patches.on_restore(put_back)


def leave() -> None:
    """Destroy the groups of this rank. The connections of one that lives on would keep other ranks waiting."""
    world: Any = torch.distributed.distributed_c10d._world
    left = [weakref.ref(group) for group in world.pg_map]
    if left:
        torch.distributed.destroy_process_group()
    if any(group() is not None for group in left):
        gc.collect()  # models that are trained in a group refer to themselves
