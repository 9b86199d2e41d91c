"""Which functions of a run were given which tensors, and which they made: the facts of a flow chart."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

Named = list[tuple[str, Tensor]]


@dataclass(frozen=True)
class SeenTensor:
    """A tensor of the run; `number` counts the tensors of one device from 1, in the order in which they were seen."""

    number: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    device: torch.device


@dataclass(frozen=True)
class Stage:
    """One call: numbers of the tensors it `takes`, among those given or made before, and the tensors it `gives`."""

    name: str
    takes: tuple[int, ...]
    gives: tuple[SeenTensor, ...]


@dataclass
class CallTrace:
    """The stages of each device, in the order of their calls; the first, "given", is what the run was called with."""

    stages: dict[torch.device, list[Stage]] = field(default_factory=dict)
    _numbers: dict[tuple[torch.device, int], int] = field(default_factory=dict)
    _kept: list[Tensor] = field(default_factory=list)  # no id is used twice while the trace lives
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def record(self, name: str, takes: Named, gives: Named, device: torch.device) -> None:
        """Note a call on `device`. What it takes and nobody made, as weights and constants, is left out."""
        with self._lock:
            known = [self._numbers.get((device, id(tensor))) for _, tensor in takes]
            new = {
                id(tensor): (own, tensor)
                for own, tensor in reversed(gives)
                if (device, id(tensor)) not in self._numbers
            }
            made = [self._number(own, tensor, device) for own, tensor in reversed(new.values())]
            taken = tuple(dict.fromkeys(n for n in known if n is not None))
            self.stages.setdefault(device, []).append(Stage(name, taken, tuple(made)))

    def _number(self, name: str, tensor: Tensor, device: torch.device) -> SeenTensor:
        number = 1 + sum(place == device for place, _ in self._numbers)
        self._kept.append(tensor)
        self._numbers[device, id(tensor)] = number
        return SeenTensor(number, name, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), tensor.device)


@contextmanager
def trace_calls(
    source: Callable[..., Any],
    stages: Mapping[str, Callable[..., Any]],
    names: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[CallTrace]:
    """Record, in this thread and in threads started meanwhile, the calls of `stages` and what `source` is called with.

        with trace_calls(FasterRCNN.forward, {"backbone": type(model.backbone).forward, ...}) as trace:
            model(images, boxes, labels, seeds)

    Nothing is patched: Python's profiler tells of every call, and replicas run the same code. `names` are those of a
    stage's results where it returns a bare tuple; fields and keys name themselves.
    """
    begins = inspect.unwrap(source).__code__
    codes = {inspect.unwrap(function).__code__: name for name, function in stages.items()}
    trace, running = CallTrace(), _Running()

    def profile(frame: Any, event: str, result: Any) -> None:
        code = frame.f_code
        if event == "call" and code is begins:
            given = _arguments(frame)
            running.device = given[0][1].device
            trace.record("given", [], given, running.device)
        elif code not in codes:
            return
        elif event == "call":
            running.takes[code] = _arguments(frame)
        elif event == "return" and code in running.takes:
            name = codes[code]
            if names and name in names:
                result = dict(zip(names[name], result, strict=True))
            device = running.device or running.takes[code][0][1].device
            trace.record(name, running.takes.pop(code), flat("", result), device)

    before = sys.getprofile()
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield trace
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # type: ignore[arg-type]


class _Running(threading.local):
    """What a thread is in the middle of: a replica's device, and the arguments of the stages that have not returned."""

    def __init__(self) -> None:
        self.device: torch.device | None = None
        self.takes: dict[Any, Named] = {}


def _arguments(frame: Any) -> Named:
    code = frame.f_code
    return [pair for name in code.co_varnames[: code.co_argcount] for pair in flat(name, frame.f_locals[name])]


def flat(name: str, value: Any) -> Named:
    """Every tensor in tuples, lists and dicts, with the path to it: fields, keys, positions."""
    if isinstance(value, Tensor):
        return [(name, value)]
    if isinstance(value, dict):
        parts = [(f"{name}.{key}".lstrip("."), part) for key, part in value.items()]
    elif hasattr(value, "_fields"):
        parts = [(f"{name}.{key}".lstrip("."), part) for key, part in zip(value._fields, value, strict=True)]
    elif isinstance(value, list | tuple):
        parts = [(f"{name}[{k}]" if len(value) > 1 else name, part) for k, part in enumerate(value)]
    else:
        parts = []
    return [pair for path, part in parts for pair in flat(path, part)]
