"""Faults to plant into virtual GPUs, each a way in which an engine like this may be wrong without a word.

A mutant replaces something of the package `vgpu`. `planted` puts it there before virtual GPUs are enabled and takes it
away again. The first two take back repairs of faults that this package once had.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch

from vgpu.distributed import batch_norm, collectives, comm
from vgpu.machine import rng
from vgpu.operators import autocast, dispatch
from vgpu.tensors import methods, set_data, storages, tensor


@dataclass(frozen=True)
class Mutant:
    """What is replaced, and the pieces of a program of which at least one must be there for it to show."""

    owner: Any
    name: str
    make: Callable[[Any], Any]  # from the original
    shows_in: frozenset[str] = frozenset()  # empty: in any program


@contextlib.contextmanager
def planted(name: str) -> Iterator[None]:
    """The fault of that name, for a block; an empty name plants none."""
    if not name:
        yield
        return
    mutant = (MUTANTS | RANK_MUTANTS)[name]
    original = getattr(mutant.owner, mutant.name)
    _forget_plans()  # what is known of operators was worked out without the fault
    with mock.patch.object(mutant.owner, mutant.name, mutant.make(original)):
        yield
    _forget_plans()


def _forget_plans() -> None:
    for plans in (dispatch._plans, dispatch._made):
        plans.clear()


def _cache_made_under_no_grad(cast: Callable) -> Callable:
    def forgetful(value: Any, dtype: torch.dtype) -> Any:
        if not torch.is_grad_enabled() and torch.is_tensor(value) and autocast._eligible(value) and value.is_leaf:
            copy = value.to(dtype)
            autocast._cache[id(value)] = value, copy
            return copy
        return cast(value, dtype)

    return forgetful


def _on(*names: str) -> Callable:
    """Decorate `change(call, args)`, which stands in the place of `call(*args)` for these operators of aten."""

    def decorate(change: Callable) -> Callable[[Any], Any]:
        def make(run: Callable) -> Any:
            def mutated(func: Any, args: tuple, kwargs: dict | None) -> Any:
                if func._schema.name.removeprefix("aten::") in names:
                    return change(lambda *given: run(func, given, kwargs), args)
                return run(func, args, kwargs)

            return mutated

        return make

    return decorate


@_on("mm", "addmm", "convolution")
def _rounded(call: Callable, args: tuple) -> Any:
    out = call(*args)
    return out.float().to(out.dtype)


@_on("native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update")
def _buffers_not_written(call: Callable, args: tuple) -> Any:
    return call(*args[:3], *(x if x is None else x.clone() for x in args[3:5]), *args[5:])


def _lists_not_counted(init: Callable) -> Callable:
    def plan(self: Any, func: Any) -> None:
        init(self, func)
        self.lists = []

    return plan


def _old_data_kept(assign: Callable) -> Callable:
    def assigned(self: Any, new: Any) -> None:
        host = getattr(self, "_host", None)
        assign(self, new)
        if host is not None and tensor.is_virtual(self) and host.shape == new.shape:
            self._host = host

    return assigned


def _memory_shared(copied: Callable) -> Callable:
    def twin(self: Any, memo: dict) -> Any:
        if getattr(self, "_is_param", False):
            return torch.nn.Parameter(self.detach(), self.requires_grad)
        return copied(self, memo)

    return twin


def _one_chunk_for_all(scatter: Callable) -> Callable:
    def scattered(*args: Any, **kwargs: Any) -> Any:
        first, *others = scatter(*args, **kwargs)
        return first, *(first.to(c.device) if c.shape == first.shape else c for c in others)

    scattered.__name__ = scatter.__name__
    return scattered


def _edge_lost(to: Callable) -> Callable:
    def moved(self: Any, *args: Any, **kwargs: Any) -> Any:
        out = to(self, *args, **kwargs)
        return out.detach() if out.device != self.device and not self.is_leaf else out

    moved.__name__ = to.__name__
    return moved


def _hooks_lost(move: Callable) -> Callable:
    def moved(self: Any, new: Any) -> None:
        move(self, new)
        (self._backward_hooks or {}).clear()

    return moved


def _counted_twice(hand_on: Callable) -> Callable:
    def handed(self: Any, old: Any) -> None:
        if self.grad is not None and self.grad.device == old.grad.device:
            old.grad = old.grad + self.grad
        hand_on(self, old)

    return handed


def _replicas_scaled(broadcast: Callable) -> Callable:
    def sent(*args: Any, **kwargs: Any) -> Any:
        first, *others = broadcast(*args, **kwargs)
        return [first, *([t * 0.999 if t.is_floating_point() else t for t in replica] for replica in others)]

    sent.__name__ = broadcast.__name__
    return sent


def _offset_kept(set_state: Callable) -> Callable:
    def restored(self: Any, state: Any) -> Any:
        offset = self._offset
        set_state(self, state)
        self._offset = offset
        return self

    return restored


def _storage_damaged(move: Callable) -> Callable:
    def loaded(*args: Any, **kwargs: Any) -> Any:
        made = move(*args, **kwargs)
        if made.nbytes():
            made[0] = 0
            made[made.nbytes() - 1] = 0
        return made

    return loaded


def _nothing_done(function: Callable) -> Callable:
    @functools.wraps(function)
    def nothing(*_: Any, **__: Any) -> None:
        """What the function should have done is left undone."""

    return nothing


def _cache_never_cleared(_: Any) -> Any:
    class Kept(dict):
        def clear(self) -> None:
            """Entries stay when a block of autocast ends."""

    return Kept()


def _rank_left_out(route: Callable) -> Callable:
    def routed(self: Any, args: list, ordinal: int) -> Any:
        args, found = route(self, args, ordinal)
        if self.name == "allreduce_" and found.rank == 1:
            args[0] = [t * 0 if t.is_floating_point() else t for t in args[0]]
        return args, found

    return routed


def _results_not_written(_: Callable) -> Callable:
    return lambda value: value.reshape(-1).clone() if isinstance(value, torch.Tensor) else value


def _narrow(_: Callable) -> Callable:
    return lambda x: x.float().to(x.dtype)


_RUN = (dispatch, "run")

# In one process.
MUTANTS = {
    "autocast forgets gradients after no_grad": Mutant(
        autocast, "_cast", _cache_made_under_no_grad, frozenset(("autocast",))
    ),
    "a graph from before a move loses its gradients": Mutant(
        set_data, "_hand_on", _nothing_done, frozenset(("data moved with a graph",))
    ),
    "a gradient counts twice after a move": Mutant(
        set_data, "_hand_on", _counted_twice, frozenset(("data moved with a graph",))
    ),
    "hooks are lost by a move": Mutant(set_data, "_move", _hooks_lost, frozenset(("parameter hook",))),
    "assigned data does not arrive": Mutant(
        methods, "set_data", _old_data_kept, frozenset(("data replaced", "vector", "data replaced with a graph"))
    ),
    "products are rounded to float32": Mutant(*_RUN, _rounded),
    "buffers of batch norm are not written": Mutant(*_RUN, _buffers_not_written, frozenset(("batch norm",))),
    "operators on lists bump no version": Mutant(
        dispatch._Plan, "__init__", _lists_not_counted, frozenset(("refused",))
    ),
    "a view in place leaves the old shape": Mutant(
        dispatch, "_follow", _nothing_done, frozenset(("set_", "in place view"))
    ),
    "a deep copy shares memory": Mutant(
        tensor.VirtualTensor, "__deepcopy__", _memory_shared, frozenset(("deep copy", "average"))
    ),
    "every replica gets the first rows": Mutant(comm, "scatter", _one_chunk_for_all, frozenset(("DataParallel",))),
    "replicas are a little smaller": Mutant(
        comm, "broadcast_coalesced", _replicas_scaled, frozenset(("DataParallel",))
    ),
    "a copy to another device loses its graph": Mutant(
        methods, "to", _edge_lost, frozenset(("to the other GPU", "to the CPU and back", "model parallel"))
    ),
    "a generator keeps its offset when its state is set": Mutant(
        rng.VirtualGenerator, "set_state", _offset_kept, frozenset(("dropout",))
    ),
    "a byte is lost in a file": Mutant(storages, "cuda", _storage_damaged, frozenset(("saved and loaded",))),
    "autocast keeps old weights": Mutant(autocast, "_cache", _cache_never_cleared, frozenset(("autocast",))),
}

# Between processes. These are looked up when they are called, so they can be planted while virtual GPUs are enabled.
RANK_MUTANTS = {
    "offloaded shards lose their gradients": Mutant(
        set_data, "_hand_on", _nothing_done, frozenset(("FSDP1 offloaded",))
    ),
    "one rank is left out of sums": Mutant(collectives.Collective, "routed", _rank_left_out, frozenset(("DDP",))),
    "what a collective received is not written": Mutant(
        collectives, "_row", _results_not_written, frozenset(("by hand", "FSDP2"))
    ),
    "SyncBatchNorm rounds to float32": Mutant(batch_norm, "_wide", _narrow, frozenset(("SyncBatchNorm",))),
}
