"""Which replica really received which rows: a trace of a run, for a module that is or is not in `nn.DataParallel`."""

import inspect
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import keystr, tree_flatten_with_path


@dataclass(frozen=True)
class ReplicaCall:
    """One call of the module: the `device` it ran on, and every tensor it was given, by the argument's name.

    A tensor inside a container is named by its path, such as `targets[0]['boxes']`.
    """

    device: torch.device
    tensors: dict[str, Tensor]

    @property
    def rows(self) -> dict[str, int]:
        """Rows of every tensor argument that has a first dimension."""
        return {name: tensor.shape[0] for name, tensor in self.tensors.items() if tensor.dim() > 0}


@dataclass
class RowTrace:
    """The calls seen by `trace_rows`."""

    _calls: list[ReplicaCall] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def calls(self) -> list[ReplicaCall]:
        """All calls in order of device index, whichever thread came first; calls on one device in order of time."""
        with self._lock:
            return sorted(self._calls, key=lambda call: (call.device.type, call.device.index or 0))

    def find_rows(self, name: str, original: Tensor) -> list[list[int]]:
        """For each call, which rows of `original` (B, ...) its argument `name` carried, found by comparing values.

        Among rows of equal value the first that was not found before is taken, so that a batch of identical rows is
        dealt out in order. A row that is no row of `original` is reported as -1.

        Raises KeyError when a call had no argument of that name.
        """
        reference = _flat_rows(original.detach())
        unseen = torch.ones(len(reference), dtype=torch.bool)  # noqa: FL002 rows are compared on the CPU
        found = []
        for call in self.calls:
            if name not in call.tensors:
                raise KeyError(f"the call on {call.device} had no tensor {name!r}, but {sorted(call.tensors)}")
            found.append([_take(row, reference, unseen) for row in _flat_rows(call.tensors[name])])
        return found

    def record(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A forward pre-hook. Replicas call it from their threads."""
        tensors = _named_tensors(module, args, kwargs)
        with self._lock:
            self._calls.append(ReplicaCall(_device_of(module, tensors), tensors))


@contextmanager
def trace_rows(module: nn.Module) -> Iterator[RowTrace]:
    """Record every call of `module`, or, for an `nn.DataParallel`, every call of its replicas.

        with trace_rows(dp) as trace:
            dp(x1, x2)
        [(str(call.device), call.rows) for call in trace.calls]

    Nothing is patched: `replicate` copies a module's `__dict__`, so that replicas share its hooks. The trace holds on
    to the tensors it saw.
    """
    traced = module.module if isinstance(module, nn.DataParallel) else module
    trace = RowTrace()
    handle = traced.register_forward_pre_hook(trace.record, with_kwargs=True)
    try:
        yield trace
    finally:
        handle.remove()


def _named_tensors(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Tensor]:
    try:
        arguments = inspect.signature(module.forward).bind_partial(*args, **kwargs).arguments
    except TypeError:  # the call itself will fail; the trace still shows what arrived
        arguments = {f"args[{i}]": value for i, value in enumerate(args)} | kwargs
    leaves = {
        name + keystr(path): leaf
        for name, value in arguments.items()
        for path, leaf in tree_flatten_with_path(value)[0]
    }
    return {name: leaf.detach() for name, leaf in leaves.items() if isinstance(leaf, Tensor)}


def _device_of(module: nn.Module, tensors: dict[str, Tensor]) -> torch.device:
    """Where a call runs: a replica has no `.parameters()`, but scatter has put its arguments on its device."""
    for tensor in (*tensors.values(), *module.parameters(), *module.buffers()):
        return tensor.device
    return torch.device("cpu")


def _flat_rows(tensor: Tensor) -> Tensor:
    """(B, ...) on any device to (B, D) on the CPU; a (B,) tensor has rows of one number."""
    return tensor.cpu().unsqueeze(-1).flatten(1)


def _take(row: Tensor, reference: Tensor, unseen: Tensor) -> int:
    """Position of the first row of `reference` that equals `row`, an unseen one if there is any; -1 without any."""
    if row.shape != reference.shape[1:]:
        return -1
    equal = torch.isclose(reference, row, rtol=0, atol=0, equal_nan=row.is_floating_point()).all(dim=1)
    for candidates in (equal & unseen, equal):
        if candidates.any():
            position = int(candidates.to(torch.uint8).argmax())
            unseen[position] = False
            return position
    return -1
