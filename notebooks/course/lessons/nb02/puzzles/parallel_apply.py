"""The outputs of `modules`, each called with its one of `chunks`, in order. Each runs in a thread of its own, in which
its one of `devices` is current, and all threads run at once.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from torch import Tensor

from course.kit.learn.exercise import TODO, Case, show
from course.kit.learn.puzzle import also, wrong

hints = (
    "`ThreadPoolExecutor(len(modules))` has as many threads as there are modules; its `map` keeps the order.",
    "A new thread begins with `cuda:0`. So write a function `run(module, chunk, device)` that enters the device.",
    "`with torch.cuda.device(device): return module(chunk)` is the body of `run`, and the last line is "
    "`return list(pool.map(run, modules, chunks, devices))`, inside `with ThreadPoolExecutor(len(modules)) as pool:`.",
)

Modules = Sequence[Callable[[Any], Any]]
PATIENCE = 5.0  # seconds in which all threads of a call have begun, on a busy machine too


def parallel_apply(modules: Modules, chunks: Sequence[Any], devices: Sequence[torch.device]) -> list[Any]:
    def run(module: Callable[[Any], Any], chunk: Any, device: torch.device) -> Any:
        with torch.cuda.device(device):
            return module(chunk)

    with ThreadPoolExecutor(len(modules)) as pool:
        return list(pool.map(run, modules, chunks, devices))


@dataclass(frozen=True)
class _Facts:
    """What came out, and how it was computed: the GPU that was current in each call, and whether all ran at once."""

    outputs: Any
    current: tuple[int, ...]
    at_once: bool

    def __repr__(self) -> str:
        places = ", ".join(f"cuda:{gpu}" for gpu in self.current)
        together = "at once" if self.at_once else "not at once"
        return f"{show(self.outputs)}, computed with {places or 'nothing'} current, {together}"


class _Witness:
    """Doubles its chunk, later the earlier it is in the list, and notes what was current."""

    def __init__(self, k: int, notes: dict[int, int], all_here: threading.Barrier, waits: bool) -> None:
        self.k, self.notes, self.all_here, self.waits = k, notes, all_here, waits

    def __call__(self, chunk: Tensor) -> Tensor:
        self.notes[self.k] = torch.cuda.current_device()
        if self.waits:
            self.all_here.wait(PATIENCE)
        time.sleep((0.2 if self.waits else 0.01) * (self.all_here.parties - self.k - 1))
        return chunk * 2


@dataclass(frozen=True)
class _Watched(Case):
    """A call with modules that witness it. Only a call that `waits` tells whether all ran at once."""

    waits: bool = False

    def call(self, function: Callable[..., Any]) -> Any:
        chunks, devices = self.args
        notes: dict[int, int] = {}
        all_here = threading.Barrier(len(chunks))
        modules = [_Witness(k, notes, all_here, self.waits) for k in range(len(chunks))]
        hook, threading.excepthook = threading.excepthook, lambda args: None  # a barrier that breaks says so below
        try:
            outputs = function(modules, chunks, devices)
        except threading.BrokenBarrierError:
            outputs = None
        finally:
            threading.excepthook = hook
        if outputs is TODO:
            return TODO
        current = tuple(notes[k] for k in sorted(notes))
        return _Facts(list(outputs) if outputs is not None else None, current, not all_here.broken)

    def show(self, name: str) -> str:
        chunks, devices = self.args
        return f"{name}(<{len(chunks)} modules that double>, {show(chunks)}, {[str(device) for device in devices]})"


def cases(random: Random) -> Sequence[Case]:
    """Chunks on two GPUs, in either order; in the first call each module waits for all others."""
    cases = []
    for k, count in enumerate((3, 2, 1, random.randint(3, 4))):
        devices = [torch.device("cuda", (gpu + k) % 2) for gpu in range(count)]
        rows = [random.randint(2, 9) for _ in devices]
        chunks = [torch.full((n,), random.randint(1, 99), device=at) for n, at in zip(rows, devices, strict=True)]
        cases.append(_Watched((chunks, devices), waits=k == 0))
    return cases


def _same_facts(given: _Facts, expected: _Facts) -> bool:
    if given.outputs is None or len(given.outputs) != len(expected.outputs):
        return False
    pairs = zip(given.outputs, expected.outputs, strict=True)
    same = all(mine.device == right.device and torch.equal(mine, right) for mine, right in pairs)
    return same and (given.current, given.at_once) == (expected.current, expected.at_once)


agree = _same_facts


def _runs_one_after_the_other(cases: Sequence[Case], given: Sequence[_Facts]) -> bool:
    """The first call is the one in which the modules wait for each other."""
    return not given[0].at_once


@wrong(recognise=_runs_one_after_the_other)
def one_after_the_other(modules: Modules, chunks: Sequence[Any], devices: Sequence[torch.device]) -> list[Any]:
    """the modules run one after the other, so only one GPU works at a time. (In this call each module waits until all
    are running.) Start all threads before you wait for the first.
    """
    outputs = []
    for module, chunk, device in zip(modules, chunks, devices, strict=True):
        with torch.cuda.device(device):
            outputs.append(module(chunk))
    return outputs


@wrong
def device_not_entered(modules: Modules, chunks: Sequence[Any], devices: Sequence[torch.device]) -> list[Any]:
    """this is what comes of threads that enter no device. Each begins with cuda:0, and a bare `.cuda()` in a model
    would go there.

    Source: what pytorch/pytorch pull request 1880, 2017, gave `parallel_apply` its `devices` for
    """
    with ThreadPoolExecutor(len(modules)) as pool:
        return list(pool.map(lambda module, chunk: module(chunk), modules, chunks))


@also(device_not_entered)
def entered_outside(modules: Modules, chunks: Sequence[Any], devices: Sequence[torch.device]) -> list[Any]:
    with torch.cuda.device(devices[0]):
        return device_not_entered(modules, chunks, devices)


def _last_comes_first(cases: Sequence[Case], given: Sequence[_Facts]) -> bool:
    """In the first call the modules wait for each other, and the last one is ready long before the others."""
    outputs, right = given[0].outputs, cases[0].call(parallel_apply).outputs
    return outputs is not None and all(map(torch.equal, outputs, reversed(right)))


@wrong(recognise=_last_comes_first)
def in_order_of_arrival(modules: Modules, chunks: Sequence[Any], devices: Sequence[torch.device]) -> list[Any]:
    """this is what comes of outputs that are appended as they arrive. The first module is not the first to be ready,
    and row 0 would get the output of row 5. Give each thread a place of its own.
    """
    outputs = []

    def run(module: Callable[[Any], Any], chunk: Any, device: torch.device) -> None:
        with torch.cuda.device(device):
            output = module(chunk)
        outputs.append(output)

    threads = [threading.Thread(target=run, args=each) for each in zip(modules, chunks, devices, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outputs


def _reads_before_it_is_there(cases: Sequence[Case], given: Sequence[_Facts]) -> bool:
    """On a busy machine the thread of a short call may be ready in time by luck, so one missing output is enough."""
    return any(facts.outputs is not None and any(x is None for x in facts.outputs) for facts in given)


@wrong(recognise=_reads_before_it_is_there)
def threads_not_awaited(modules: Modules, chunks: Sequence[Any], devices: Sequence[torch.device]) -> list[Any]:
    """this is what comes of threads for which nobody waits: the outputs are read before they are there. `join` waits
    for a thread.
    """
    outputs: list[Any] = [None] * len(modules)

    def run(k: int) -> None:
        with torch.cuda.device(devices[k]):
            outputs[k] = modules[k](chunks[k])

    threads = [threading.Thread(target=run, args=(k,)) for k in range(len(modules))]
    for thread in threads:
        thread.start()
    early = list(outputs)
    for thread in threads:  # only so that no thread of this answer outlives it
        thread.join()
    return early
