"""An answer is watched while it runs: which races it has, whether the host waits, and which streams work."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

import vgpu
from course.kit.learn.exercise import TODO, Case
from course.lessons.nb35.launches import LAUNCH, launches

ACCESS = re.compile(r"^  (?:first|then|used) .*? (reads|writes) .*, by (the default stream|stream)", re.MULTILINE)
WAITS = ((torch.cuda, "synchronize"), (torch.cuda.Stream, "synchronize"), (torch.cuda.Event, "synchronize"))


@dataclass(frozen=True)
class Ran:
    """How a program ran: its numbers, each kind of race once, whether the host waited and the side stream worked."""

    numbers: tuple[float, ...]
    races: tuple[str, ...]
    host_waited: bool
    beside: bool

    def __repr__(self) -> str:
        found = f"races: {'; '.join(self.races)}" if self.races else "no race"
        host = "the host waits" if self.host_waited else "the host does not wait"
        beside = "" if self.beside else "; nothing runs on the side stream"
        return f"the numbers {list(self.numbers)}; {found}; {host}{beside}"


@dataclass(frozen=True)
class Averaged(Case):
    """args: the weight and the gradients of some steps, as lists. The caller reads both results on its own stream."""

    def call(self, function: Callable[..., Any]) -> Any:
        start, steps = self.args
        side = torch.cuda.Stream()
        weight, average = (torch.tensor(start, device=side.device) for _ in "wa")
        gradients = [torch.tensor(step, device=side.device) for step in steps]
        torch.cuda.synchronize()
        with vgpu.races(error=False) as found, launches() as given, _host_waits() as waits:
            if function(weight, gradients, average, side) is TODO:
                return TODO
            both = torch.cat([weight, average])
        beside = any(step.what == LAUNCH and step.stream == side for step in given)
        return Ran(_rounded(both), kinds(found), bool(waits), beside)

    def show(self, name: str) -> str:
        start, steps = self.args
        return f"{name}(weight={start}, gradients={steps}, ...)"


def kinds(found: Sequence[Exception]) -> tuple[str, ...]:
    """Each kind of race once, in words: who touches the memory first, and who then."""
    told = set()
    for race in found:
        accesses = [(by.replace("stream", "side stream") if by == "stream" else by[4:], does) for does, by in _of(race)]
        told.add(" and then ".join(f"the {by} {does}" for by, does in accesses))
    return tuple(sorted(told))


def _of(race: Exception) -> list[tuple[str, str]]:
    return [(match[1], match[2]) for match in ACCESS.finditer(str(race))]


def _rounded(numbers: Tensor) -> tuple[float, ...]:
    return tuple(round(number, 4) for number in numbers.tolist())


@contextlib.contextmanager
def _host_waits() -> Iterator[list[str]]:
    waits: list[str] = []
    with contextlib.ExitStack() as stack:
        for owner, name in WAITS:
            stack.enter_context(patch.object(owner, name, _noting(getattr(owner, name), waits)))
        yield waits


def _noting(function: Callable[..., Any], waits: list[str]) -> Callable[..., Any]:
    def noted(*args: Any, **kwargs: Any) -> Any:
        waits.append(function.__name__)
        return function(*args, **kwargs)

    return noted
