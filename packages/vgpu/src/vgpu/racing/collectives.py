"""The streams of process groups: a collective runs beside the program until somebody waits for its work."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from vgpu.base.patches import Patches
from vgpu.machine import streams
from vgpu.racing.clocks import Known
from vgpu.racing.detector import Detector, Touched
from vgpu.racing.report import Group
from vgpu.tensors.tensor import is_virtual

__all__ = ["Group", "install", "is_wait", "launched"]

dist: Any = torch.distributed

# The methods of a process group that begin a collective and return its work; they have other names in other versions.
_BEGIN = re.compile(r"_?(all|reduce|broadcast|gather|scatter|send|recv|barrier|end_coalescing)")


class _Thread(threading.local):
    asked: list[Known] | None = None  # inside of a method that returns a work: the moments at which its parts are done


_thread = _Thread()


def install(patches: Patches, detector: Detector) -> None:
    """Let works know at which moment they are done, and whoever waits for one learn it."""
    if not dist.is_available():
        return
    done: dict[int, tuple[Any, Known]] = {}  # by the identity of the work, which is kept until somebody waits

    def begins(method: Callable) -> Callable:
        @functools.wraps(method)
        def begun(*args: Any, **kwargs: Any) -> Any:
            outer, _thread.asked = _thread.asked, []
            try:
                work = method(*args, **kwargs)
            finally:
                moments, _thread.asked = _thread.asked, outer
            if work is not None and moments:
                done[id(work)] = work, _latest(moments)
            elif outer is not None:
                outer.extend(moments)
            return work

        return begun

    def waits(method: Callable) -> Callable:
        @functools.wraps(method)
        def waited(work: Any, *args: Any, **kwargs: Any) -> Any:
            result = method(work, *args, **kwargs)
            _, moment = done.pop(id(work), (None, {}))
            _learn(detector, moment)
            return result

        return waited

    for name in filter(_BEGIN.match, dir(dist.ProcessGroup)):
        patches.set(dist.ProcessGroup, name, begins(getattr(dist.ProcessGroup, name)))
    for name in ("wait", "synchronize"):
        patches.set(dist.Work, name, waits(getattr(dist.Work, name)))


def _latest(moments: list[Known]) -> Known:
    merged: dict = {}
    for moment in moments:
        for actor, step in moment.items():
            merged[actor] = max(step, merged.get(actor, 0))
    return merged


def _learn(detector: Detector, moment: Known) -> None:
    """Let the current stream of each device that took part go on after the moment."""
    for ordinal in {actor.ordinal for actor in moment if isinstance(actor, Group)}:
        detector.wait(streams.current(ordinal), moment)


def is_wait(func: Any) -> bool:
    """Whether an operator is the wait of the functional collectives."""
    return func._schema.name.endswith("::wait_tensor")


def launched(
    detector: Detector, plan: Any, given: dict[str, Any], touched: list[Touched], result: Any, stream: Any
) -> None:
    """A collective is given to the stream of its group, which first waits for the current one.

    Where neither the program nor a functional collective asked for it, C++ did, such as the reducer of DDP, and waits
    itself.
    """
    group = Group(_name_of(given), stream.device_index)
    detector.wait(group, detector.moment(stream))
    for one in touched:
        one.writes = one.writes or not plan.collective.functional
    if plan.collective.functional:
        touched = [*touched, *(Touched(leaf._host, leaf._ordinal, True) for leaf in _virtual(result))]
    detector.launch(group, plan.collective.name.strip("_"), touched)
    moment = detector.moment(group)
    if _thread.asked is not None:
        _thread.asked.append(moment)
    elif not plan.collective.functional:
        detector.wait(stream, moment)


def _virtual(result: Any) -> list[Any]:
    return [leaf for leaf in tree_leaves(result) if is_virtual(leaf)]


def _name_of(given: dict[str, Any]) -> str:
    group = given.get("group_name") or given.get("process_group")
    if isinstance(group, str):
        return group
    try:
        return str((group if isinstance(group, dist.ProcessGroup) else dist.ProcessGroup.unbox(group)).group_name)
    except (RuntimeError, AttributeError):
        return "default"
