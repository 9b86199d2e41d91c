"""A puzzle with a target: the result has to be right, and to cost no more than the reference pays for it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed
from torch.utils._python_dispatch import TorchDispatchMode

import vgpu
from course.kit.learn.exercise import TODO, Case, show
from course.kit.learn.peak_memory import peak_bytes
from course.kit.sent import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, Sent

RANKS = 2
COUNTED = ALL_REDUCE | ALL_GATHER | REDUCE_SCATTER


@dataclass(frozen=True)
class Paid:
    """What an answer returned, and what it cost. `unit` names the cost as a sentence does."""

    value: Any
    cost: int
    unit: str

    def __repr__(self) -> str:
        return f"{show(_numbers(self.value))} for {self.cost:,} {self.unit}"


def right_and_cheap(given: Any, expected: Paid) -> bool:
    """Equal to rounding, and at most the cost of the reference."""
    torch.testing.assert_close(given.value, expected.value, rtol=1e-4, atol=1e-5)
    return given.cost <= expected.cost


def right_but_dear(cases: Sequence[Case], given: Sequence[Any], reference: Callable[..., Any]) -> bool:
    """Whether all results are right, and some of them cost too much."""
    dear = False
    for case, paid in zip(cases, given, strict=True):
        expected = case.call(reference)
        torch.testing.assert_close(paid.value, expected.value, rtol=1e-4, atol=1e-5)
        dear |= paid.cost > expected.cost
    return dear


class _Collectives(TorchDispatchMode):
    """Notes the collectives of a rank, and refuses those whose bytes nobody counts here."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__
        if "c10d" in func.namespace and name not in {"wait_tensor", *COUNTED}:
            known = "all_reduce, all_gather_into_tensor and reduce_scatter_tensor"
            raise RuntimeError(f"{name.strip('_')} is not counted in this puzzle; {known} are")
        self.calls += name in COUNTED
        return func(*args, **(kwargs or {}))


@dataclass(frozen=True)
class OnRanks(Case):
    """args: for each argument, what each of the two ranks gets, on its own GPU. The cost is that of one rank.

    unit: "collectives" counts calls; "bytes sent by each GPU" is what a ring sends for them.
    """

    unit: str = "collectives"

    def call(self, function: Callable[..., Any]) -> Any:
        results = vgpu.ranks(RANKS, backend="gloo")(self._on_rank)(function)
        if any(value is TODO for value, _ in results):
            return TODO
        return Paid([value for value, _ in results], max(cost for _, cost in results), self.unit)

    def _on_rank(self, function: Callable[..., Any]) -> tuple[Any, int]:
        rank = distributed.get_rank()
        own = [_on_own_gpu(argument[rank]) for argument in self.args]
        with Sent() as sent, _Collectives() as collectives:
            value = function(*own)
        if value is not TODO:
            value = _numbers(value)
        return value, collectives.calls if self.unit == "collectives" else sent.bytes_of_each_gpu(RANKS)

    def show(self, name: str) -> str:
        return f"{name}({', '.join(show(argument[0]) for argument in self.args)}) on rank 0"


@dataclass(frozen=True)
class InMemory(Case):
    """The cost is what the call has alive at its worst moment, of the tensors that it makes itself."""

    def call(self, function: Callable[..., Any]) -> Any:
        returned: list[Any] = []
        args = [argument.clone() if isinstance(argument, Tensor) else argument for argument in self.args]
        peak = peak_bytes(lambda: returned.append(function(*args)))
        if returned[0] is TODO:
            return TODO
        value = args[0] if returned[0] is None else returned[0]  # what was changed in place
        return Paid(_numbers(value), peak, "bytes at the worst moment")


def _on_own_gpu(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.cuda()  # noqa: FL001 the rank's own GPU is current
    return [_on_own_gpu(item) for item in value] if isinstance(value, list) else value


def _numbers(value: Any) -> Any:
    """Tensors, on the CPU: what is compared must not depend on where a rank left it."""
    if isinstance(value, Tensor):
        return value.detach().cpu()
    if isinstance(value, list | tuple):
        return [_numbers(item) for item in value]
    return value
