"""A puzzle with a target: the result has to be right, and must not cost more than the target."""

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
    """The result of an answer, its cost, and the highest cost that is allowed. `unit` names the cost."""

    value: Any
    cost: int
    target: int
    unit: str

    def __repr__(self) -> str:
        return f"{show(self.value)} ({self.unit}: {self.cost:,}, target {self.target:,})"


def right_and_cheap(given: Any, expected: Paid) -> bool:
    """Equal to rounding, and within the target; as dear as a wrong answer that is dear itself."""
    torch.testing.assert_close(given.value, expected.value, rtol=1e-4, atol=1e-5)
    return given.cost <= max(given.target, expected.cost)


def right_but_dear(cases: Sequence[Case], given: Sequence[Any], reference: Callable[..., Any]) -> bool:
    """Whether all results are right, and some of them cost more than the target."""
    for case, paid in zip(cases, given, strict=True):
        torch.testing.assert_close(paid.value, case.call(reference).value, rtol=1e-4, atol=1e-5)
    return any(paid.cost > paid.target for paid in given)


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
    """args: for each argument, what each of the two ranks gets, on its own GPU. The cost is that of the dearer rank.

    bytes_sent: the target, in bytes that a ring sends; None where the target is one collective.
    """

    bytes_sent: int | None = None

    def call(self, function: Callable[..., Any]) -> Any:
        results = vgpu.ranks(RANKS, backend="gloo")(self._on_rank)(function)
        if any(value is TODO for value, _ in results):
            return TODO
        values, costs = [value for value, _ in results], [cost for _, cost in results]
        if self.bytes_sent is None:
            return Paid(values, max(costs), 1, "collectives")
        return Paid(values, max(costs), self.bytes_sent, "bytes sent by each GPU")

    def _on_rank(self, function: Callable[..., Any]) -> tuple[Any, int]:
        rank = distributed.get_rank()
        own = [_on_own_gpu(argument[rank]) for argument in self.args]
        with Sent() as sent, _Collectives() as collectives:
            value = function(*own)
        if value is not TODO:
            value = _numbers(value)
        return value, collectives.calls if self.bytes_sent is None else sent.bytes_of_each_gpu(RANKS)

    def show(self, name: str) -> str:
        return f"{name}({', '.join(show(argument[0]) for argument in self.args)}) on rank 0"


@dataclass(frozen=True)
class InMemory(Case):
    """The cost is what the call has alive at its worst moment, of the tensors that it makes itself, in bytes.

    peak: the target.
    """

    peak: int = 0

    def call(self, function: Callable[..., Any]) -> Any:
        returned: list[Any] = []
        args = [argument.clone() if isinstance(argument, Tensor) else argument for argument in self.args]
        peak = peak_bytes(lambda: returned.append(function(*args)))
        if returned[0] is TODO:
            return TODO
        value = args[0] if returned[0] is None else returned[0]  # what was changed in place
        return Paid(_numbers(value), peak, self.peak, "bytes at the worst moment")


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
