"""`torch.distributed`: NCCL needs real GPUs, so its place as a backend is taken by gloo, under NCCL's name and rules.

The stand-in is registered where PyTorch makes backends, so that no import of a function, made earlier, escapes it.
What collectives then do stands in collectives.py.
"""

from __future__ import annotations

import datetime
import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from vgpu.base import errors
from vgpu.base.patches import Patches
from vgpu.distributed import collectives, groups, leaving
from vgpu.machine import devices


def install(patches: Patches) -> None:
    """Register the stand-in, and refuse to build NCCL's own groups, which would end the process."""
    if not dist.is_available():
        return
    c10d = dist.distributed_c10d
    _install_backend(patches, c10d)
    patches.set(c10d, "_new_process_group_helper", _plain_nccl(c10d._new_process_group_helper))
    for module in (dist, c10d):
        patches.set(module, "is_nccl_available", lambda: True)
    if c10d.default_pg_nccl_timeout is None:  # builds without CUDA do not know it
        patches.set(c10d, "default_pg_nccl_timeout", datetime.timedelta(minutes=10))
    # split_group, and so a mesh of two dimensions, copies the options of the group that it splits.
    options = c10d.ProcessGroupGloo._Options  # type: ignore[attr-defined]  # pybind has it, its stub has not
    patches.set(options, "__deepcopy__", _copied, may_be_missing=True)
    _install_works(patches)
    leaving.install(patches)


def note_gloo() -> None:
    """Say once whose place gloo takes."""
    errors.note("virtual GPUs have no NCCL: this process group communicates over gloo")


def _copied(options: Any, memo: dict) -> Any:
    """The options of a group over gloo, of which PyTorch itself makes no copies."""
    made = type(options)()
    for name in ("_devices", "_threads", "_timeout", "global_ranks_in_group", "group_name"):
        setattr(made, name, getattr(options, name))
    return made


def _install_backend(patches: Patches, c10d: Any) -> None:
    """Let "nccl" make the stand-in: from torch 2.14 a table says how, before that a name does."""
    stand_in = _stand_in(c10d)
    if not hasattr(c10d, "_create_nccl_process_group"):
        if hasattr(dist, "ProcessGroupNCCL"):  # builds without CUDA lack it
            patches.set(dist.ProcessGroupNCCL, "__init__", _refuse)
        patches.set(c10d, "ProcessGroupNCCL", stand_in, may_be_missing=True)
        # PyTorch would split a new group from the first one, which C++ takes from NCCL only; over gloo it is made anew.
        patches.set(c10d, "_get_split_source", lambda *_: None)
        return
    plugins, name = c10d.Backend._plugins, "NCCL"
    before = plugins.get(name)

    def creator(options: Any, _: Any = None) -> Any:
        return stand_in(options.store, options.group_rank, options.group_size, options)

    plugins[name] = c10d.Backend._BackendPlugin(creator, True)
    patches.on_restore(lambda: plugins.pop(name) if before is None else plugins.update({name: before}))
    for name_of_class in ("ProcessGroupNCCL", "ProcessGroupNCCL2", "ProcessGroupNCCLLazy"):
        kind = getattr(c10d, name_of_class, None)
        if kind is None:  # builds without CUDA have none of them
            for module in (dist, c10d):
                patches.set(module, name_of_class, stand_in, may_be_missing=True)
        else:
            patches.set(kind, "__init__", _refuse)


def _refuse(self: Any, *args: Any, **kwargs: Any) -> None:
    raise errors.not_simulated("ProcessGroupNCCL itself; init_process_group('nccl') gives a group over gloo")


class _Options:
    """In the place of `ProcessGroupNCCL.Options` in builds that lack it: what is set on it says nothing to gloo."""

    _timeout = datetime.timedelta(minutes=10)
    group_name, global_ranks_in_group = "", ()
    is_high_priority_stream = False


@functools.cache
def _stand_in(c10d: Any) -> type:
    """The backend behind "nccl": gloo, with what PyTorch's Python asks of NCCL's."""

    class ProcessGroupNCCLOverGloo(c10d.ProcessGroupGloo):
        Options = c10d.ProcessGroupNCCL.Options if hasattr(c10d, "ProcessGroupNCCL") else _Options
        uid = 0

        def __init__(self, store: Any, rank: int, size: int, options: Any = None) -> None:
            if options is None:  # a program makes NCCL's group itself; PyTorch gives the options
                _refuse(self)
            timeout = getattr(options, "timeout", None) or options._timeout
            name = getattr(options, "group_id", None) or options.group_name
            with leaving.of_group(name, store, rank, size, options.global_ranks_in_group, timeout):
                super().__init__(store, rank, size, timeout=timeout)
            note_gloo()

        def _nothing(self, device: Any = None) -> None:
            """Gloo has connected its ranks already, makes groups by their members alone, and aborts one by one."""

        eager_connect_single_device = perform_nocolor_split = _group_start = _group_end = _nothing

    return ProcessGroupNCCLOverGloo


def _plain_nccl(make_group: Callable) -> Callable:
    """Let PyTorch's several implementations of NCCL be the one there is here."""
    signature = inspect.signature(make_group)

    @functools.wraps(make_group)
    def plain_nccl(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        backend = str(given["backend"]).lower()
        if "nccl" in backend:
            given["backend"] = dist.Backend(re.sub(r"nccl[\w-]*", "nccl", backend))
        if given.get("device_id") is not None:
            # NCCL is C++, so Python's `torch.cuda` counts as unused after this; a mesh then chooses the rank's device.
            devices.check_exists(given["device_id"])
        return make_group(**given)

    return plain_nccl


def _install_works(patches: Patches) -> None:
    """Replace what hands out the tensors of a work, and what collects works: gloo knows hosts only, and no groups."""
    kind = dist.ProcessGroup
    start, end, get_future = kind._start_coalescing, kind._end_coalescing, dist._Work.get_future

    def _start_coalescing(group: Any, device: torch.device) -> None:
        found = groups.route(group)
        if not found.nccl:
            start(group, device)
        found.pending = []

    def _end_coalescing(group: Any, device: torch.device) -> Any:
        found = groups.route(group)
        if not found.nccl:
            return end(group, device)
        works, found.pending = found.pending or [], None
        return collectives.together(works)

    patches.set(kind, "_start_coalescing", _start_coalescing)
    patches.set(kind, "_end_coalescing", _end_coalescing)
    patches.set(dist._Work, "get_future", lambda work: get_future(work).then(collectives.placed))
