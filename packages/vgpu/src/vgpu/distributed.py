"""`torch.distributed`: NCCL needs real GPUs, so a process group that asks for it gets gloo and a note."""

from __future__ import annotations

import datetime
import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

import torch.distributed as dist

from vgpu import errors
from vgpu.patches import Patches

__tracebackhide__ = True  # a user's traceback, in pytest and in a diagnosis, ends in the user's own line

_WITH_GPUS = "cpu:gloo,cuda:nccl"  # what a machine with GPUs takes where no backend is named
_ONLY_NCCLS = ("backend_options", "pg_options", "device_id")  # its options, and the device it binds a group to


def install(patches: Patches) -> None:
    """Replace what makes every process group, and refuse to build NCCL's own, which would end the process."""
    if not dist.is_available():
        return
    c10d = dist.distributed_c10d
    # Modules of PyTorch import `init_process_group` and `new_group` by name; this one they all call in its place.
    patches.set(c10d, "_new_process_group_helper", _over_gloo(c10d._new_process_group_helper))
    patches.set(dist, "is_nccl_available", lambda: True)
    if c10d.default_pg_nccl_timeout is None:  # builds without CUDA do not know it
        patches.set(c10d, "default_pg_nccl_timeout", datetime.timedelta(minutes=10))
    for name in ("ProcessGroupNCCL", "ProcessGroupNCCL2", "ProcessGroupNCCLLazy"):
        kind = getattr(c10d, name, None)
        if kind is not None:  # builds without CUDA, and older versions, have fewer of them
            patches.set(kind, "__init__", _refuse)


def _refuse(self: Any, *args: Any, **kwargs: Any) -> None:
    raise errors.not_simulated("ProcessGroupNCCL itself; init_process_group('nccl') gives a group over gloo")


def _over_gloo(make_group: Callable) -> Callable:
    signature = inspect.signature(make_group)

    @functools.wraps(make_group)
    def over_gloo(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        backend = str(given["backend"]).lower()
        backend = _WITH_GPUS if backend == "undefined" else backend
        if "nccl" in backend:
            given["backend"] = dist.Backend(re.sub(r"nccl[\w-]*", "gloo", backend))
            errors.note("virtual GPUs have no NCCL: this process group communicates over gloo")
            for name in _ONLY_NCCLS:
                given.pop(name, None)
        given.pop("device_id", None)
        return make_group(**given)

    return over_gloo
