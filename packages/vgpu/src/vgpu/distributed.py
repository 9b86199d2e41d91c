"""`torch.distributed`: NCCL needs real GPUs, so a process group that asks for it gets gloo and a note."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

import torch.distributed as dist

from vgpu import errors
from vgpu.patches import Patches

__tracebackhide__ = True  # a user's traceback, in pytest and in a diagnosis, ends in the user's own line


def install(patches: Patches) -> None:
    """Replace the two functions that choose a backend."""
    if not dist.is_available():
        return
    for name in ("init_process_group", "new_group"):
        function = _over_gloo(getattr(dist.distributed_c10d, name))
        for module in (dist, dist.distributed_c10d):
            patches.set(module, name, function)
    patches.set(dist, "is_nccl_available", lambda: True)


def _over_gloo(function: Callable) -> Callable:
    signature = inspect.signature(function)

    @functools.wraps(function)
    def over_gloo(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        backend = given.get("backend")
        if backend is None and function.__name__ == "init_process_group":
            backend = "cpu:gloo,cuda:nccl"  # what a machine with GPUs takes by default
        if backend is not None and "nccl" in str(backend).lower():
            given["backend"] = "gloo" if ":" not in backend else re.sub("nccl", "gloo", backend, flags=re.IGNORECASE)
            given.pop("pg_options", None)
            errors.note("virtual GPUs have no NCCL: this process group communicates over gloo")
        given.pop("device_id", None)  # only NCCL binds a group to a device
        return function(**given)

    return over_gloo
