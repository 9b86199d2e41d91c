"""A puzzle with a target: the result has to be right, and must not cost more than the target."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import vgpu
from course.kit.learn.exercise import TODO, Case, show
from course.kit.learn.peak_memory import peak_bytes
from course.kit.sent import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, Sent

COUNTED = ALL_REDUCE | ALL_GATHER | REDUCE_SCATTER


@dataclass(frozen=True)
class Paid:
    """The result of an answer, its cost, and the highest cost that is allowed. `unit` names the cost.

    arguments: what the call has left of its arguments, where it must not change them.
    """

    value: Any
    cost: int
    target: int
    unit: str
    arguments: Sequence[Any] = ()

    def __repr__(self) -> str:
        return f"{show(self.value, _first_numbers)} ({self.unit}: {self.cost:,}, target {self.target:,})"


def _first_numbers(tensor: Tensor) -> str:
    """Some of them, so that two tensors of one shape can be told apart."""
    numbers = [show(number) for number in tensor.flatten()[:3].tolist()]
    more = ", ..." if tensor.numel() > len(numbers) else ""
    return f" of {', '.join(numbers)}{more}" if tensor.shape else ""


def right_and_cheap(given: Any, expected: Paid) -> bool:
    """Equal to rounding, and within the target; as dear as a wrong answer that is dear itself."""
    torch.testing.assert_close(given.value, expected.value, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(given.arguments, expected.arguments, rtol=0, atol=0)
    return given.cost <= max(given.target, expected.cost)


def right_but_dear(cases: Sequence[Case], given: Sequence[Any], reference: Callable[..., Any]) -> bool:
    """Whether all results are right, and some of them cost more than the target."""
    for case, paid in zip(cases, given, strict=True):
        right = case.call(reference)
        torch.testing.assert_close(paid.value, right.value, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(paid.arguments, right.arguments, rtol=0, atol=0)
    return any(paid.cost > paid.target for paid in given)


class _Collectives(TorchDispatchMode):
    """Notes the collectives of a rank. Refuses those whose bytes nobody counts here, and tensors on the CPU."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__
        if "c10d" in func.namespace and name not in {"wait_tensor", *COUNTED}:
            known = "all_reduce, all_gather, all_gather_into_tensor, reduce_scatter and reduce_scatter_tensor"
            raise RuntimeError(f"{name.strip('_')} is not counted in this puzzle; {known} are")
        if name in COUNTED and not all(tensor.is_cuda for tensor in tree_leaves(args) if isinstance(tensor, Tensor)):
            raise RuntimeError(f"{name.strip('_')} got a tensor on the CPU, and NCCL sends tensors on GPUs alone")
        self.calls += name in COUNTED
        return func(*args, **(kwargs or {}))


@dataclass(frozen=True)
class OnRanks(Case):
    """args: for each argument, what each rank gets, on its own GPU. The cost is that of the dearest rank.

    bytes_sent: the target, in bytes that a ring sends; None where the target is one collective.
    """

    bytes_sent: int | None = None

    def call(self, function: Callable[..., Any]) -> Any:
        results = vgpu.ranks(len(self.args[0]), backend="gloo")(self._on_rank)(function)
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
        return value, collectives.calls if self.bytes_sent is None else sent.bytes_of_each_gpu(len(self.args[0]))

    def show(self, name: str) -> str:
        alone = " alone" if len(self.args[0]) == 1 else ""
        return f"{name}({', '.join(show(argument[0]) for argument in self.args)}) on rank 0{alone}"


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
        in_place = returned[0] is None or returned[0] is args[0]
        value, kept = (args[0], args[1:]) if in_place else (returned[0], args)
        return Paid(_numbers(value), peak, self.peak, "bytes at the worst moment", _numbers(kept))


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
