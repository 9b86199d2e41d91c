"""Values that come late: what a stream was given is computed when somebody waits for it, and until then is poison.

Each tensor of a device has its values twice while this runs. An operator computes at once, in the order of the program,
as always, which tells shapes and errors. Beside that the call is kept, and computed once more on late values, in the
order of queues.py. The late values are those that the host gets to see.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map

from vgpu.base.patches import Patches
from vgpu.distributed import collectives
from vgpu.machine import memory, pinned, ranks, rng
from vgpu.operators import again, dispatch
from vgpu.operators.again import poison
from vgpu.racing.clocks import Actor, Known
from vgpu.racing.queues import Queues, Work
from vgpu.tensors.tensor import VirtualTensor, is_virtual, view

# Collectives that have one list of tensors, and send it; all but the last fill it, too.
_SEND = ("allreduce_", "reduce_", "send")
_WAIT = torch.ops._c10d_functional.wait_tensor if torch.distributed.is_available() else None

Late = torch.UntypedStorage  # the late values of a storage


@dataclasses.dataclass
class Call:
    """One call of an operator, kept to be computed again.

    Attributes:
        plan: what is known of the operator.
        func: the operator.
        args: its arguments, in which tensors of devices are their late values, and those of the host that are not
            pinned are copies.
        kwargs: the same by name.
        touched: the tensors of devices that it was given, each with its late values.
        guard: what the dispatcher included and excluded.
        drawn: the generator that it draws from and its state before, if it draws.
        pinned: memory of the host that it writes, with what was there before.
        inputs: the tensors that a collective sends.
        sent: their late values, and those that are sent.
        result: what the call returned.
    """

    plan: Any
    func: Any
    args: tuple
    kwargs: dict[str, Any]
    touched: list[tuple[VirtualTensor, Late]]
    guard: tuple[Any, Any]
    drawn: tuple[Any, torch.Tensor] | None
    pinned: list[tuple[torch.Tensor, torch.Tensor]]
    inputs: list[VirtualTensor]
    sent: list[tuple[torch.Tensor, torch.Tensor]]
    result: Any = None


class Brought:
    """What a collective has brought, which is known when its work has ended."""

    def __init__(self, outputs: list[torch.Tensor], wait: Callable[[], Any]) -> None:
        self._outputs, self._wait = outputs, wait
        self._values: list[torch.Tensor] = []
        self.taken = False

    def take(self) -> list[torch.Tensor]:
        """The values, from before the program goes on to change them."""
        if not self.taken:
            self._wait()
            self._values, self.taken = [one.clone() for one in self._outputs], True
            self._outputs = []
        return self._values


class _Thread(threading.local):
    def __init__(self) -> None:
        self.repeats = False  # a call is computed once more
        self.call: Call | None = None  # which a stream is about to be given
        self.brought: list[tuple[Actor, int, Brought]] = []  # by collectives that nobody has waited for


class Delay:
    """The late values of all memory, and the calls that are to be computed again."""

    def __init__(self) -> None:
        self._of_process, self._of_ranks, self._thread = Queues(), [], _Thread()  # type: ignore[var-annotated]
        # Not as a program waits, who would have the detector think that its stream has waited.
        self._wait_for: Any = torch.distributed.Work.wait if torch.distributed.is_available() else None
        self._late: dict[int, Late] = {}  # by the identity of the storage
        self._awaited: dict[int, Brought] = {}  # by the identity of a storage that a collective fills

    def install(self, patches: Patches) -> None:
        """Count no memory for calls that are computed again."""
        track = memory.track
        patches.set(memory, "track", lambda *args: None if self._thread.repeats else track(*args))

    @property
    def repeats(self) -> bool:
        """Whether this thread computes a call once more."""
        return self._thread.repeats

    @property
    def _queues(self) -> Queues:
        return ranks.own("queues", self._of_new_rank, self._of_process)  # no rank does what a different one was given

    def _of_new_rank(self) -> Queues:
        self._of_ranks.append(Queues())
        return self._of_ranks[-1]

    # Before and after an operator computes.

    def keep(self, plan: Any, func: Any, args: tuple, kwargs: dict | None, of_host: Callable) -> Call:
        """Keep a call before it computes.

        Args:
            plan: what is known of the operator.
            func: the operator.
            args: its arguments.
            kwargs: those that were given by name.
            of_host: tells whether memory of the host may be in use by a stream. Other memory of the host was read when
                the call returns.
        """
        given = dispatch.named(plan, args, kwargs)
        touched = [(leaf, self._of(leaf._host)) for leaf in tree_leaves(given) if _is_dense(leaf)]
        inputs = list(_inputs(plan, given))
        late_args, late_kwargs = tree_map(lambda leaf: self._as_late(leaf, of_host), (args, kwargs or {}))
        return Call(
            plan,
            func,
            late_args,
            late_kwargs,
            touched,
            (dispatch.included(), dispatch.excluded()),
            self._drawn(plan, args, kwargs, touched),
            [(leaf, leaf.clone()) for key in plan.written for leaf in tree_leaves(given.get(key)) if _is_of_host(leaf)],
            inputs,
            [(_on(self._of(leaf._host), leaf._host), leaf._host.clone()) for leaf in inputs],
        )

    def see(self, tensors: Iterable[VirtualTensor]) -> None:
        """The host, which has waited, is to see the late values of tensors."""
        for one in tensors:
            again.put(_on(self._of(one._host), one._host), one._host)

    def saw(self, tensors: list[VirtualTensor], result: Any) -> None:
        """An operator for which the host waited has computed: what it left are late values, too."""
        for one in [*tensors, *filter(_is_dense, tree_leaves(result))]:
            again.put(one._host, _on(self._of(one._host), one._host))

    def returned(self, call: Call, result: Any) -> None:
        """An operator has computed, and a stream is about to be given it: nobody is to see what it wrote."""
        call.result, self._thread.call = result, call
        for one, before in call.pinned:
            one.copy_(before)
        for leaf in tree_leaves(result):
            if _was_copied_to_host(call, leaf):
                poison(leaf.untyped_storage())
        for leaf, late in call.touched:
            if self._of(leaf._host) is not late:  # it was resized, and has new memory
                again.put(leaf._host, _on(self._of(leaf._host), leaf._host))

    # What the detector tells.

    def launched(self, actor: Actor, step: int, known: Known, races: list[tuple[Actor, int]]) -> None:
        """A stream was given the call that was returned last.

        Args:
            actor: the stream.
            step: its step.
            known: all that it knows, with that step.
            races: the steps that race with this one.
        """
        call, self._thread.call = self._thread.call, None
        if call is None:
            return
        if call.plan.collective is not None:
            hosts = self._filled(call)
            brought, outputs = self._brings(call, hosts), [_on(self._of(host), host) for host in hosts]
            self._awaited.update((host.untyped_storage()._cdata, brought) for host in hosts)
            self._thread.brought.append((actor, step, brought))
            work = Work(actor, step, known, lambda: _arrive(call, brought, outputs), lambda: brought.taken)
        else:
            results = self._results(call)
            work = Work(actor, step, known, lambda: self._repeat(call, results))
        call.touched, call.inputs, call.result = [], [], None  # else a tensor that the program drops would stay
        self._queues.add(work)
        for other, earlier in races:
            self._queues.turn_round(other, earlier, work)

    def waited(self, moment: Known) -> None:
        """The host goes on after a moment."""
        for queues in [self._queues] if ranks.here() is not None else [self._of_process, *self._of_ranks]:
            queues.run(moment)

    def arrived(self, moment: Known) -> None:
        """A stream, or the host, goes on after a moment, so what collectives have brought until then is there."""
        due = [one for one in self._thread.brought if moment.get(one[0], 0) >= one[1]]
        self._thread.brought = [one for one in self._thread.brought if one not in due]
        for _, _, brought in due:
            brought.take()

    def born(self, storage: torch.UntypedStorage, actor: Actor, step: int, known: Known, filled: bool) -> None:
        """An operator has made memory, and filled it if it does nothing else that a stream would be given."""
        late = self._late[storage._cdata] = torch.UntypedStorage(storage.nbytes())
        poison(late)
        if filled:
            values = again.copy(storage)
            self._queues.add(Work(actor, step, known, lambda: late.copy_(values)))

    def dead(self, key: int) -> Late | None:
        """Memory is gone, though work may still use it; gives its late values."""
        self._awaited.pop(key, None)
        return self._late.pop(key, None)

    def reused(self, late: Late, actor: Actor, step: int, known: Known, races: list[tuple[Actor, int]]) -> None:
        """Memory was handed out again while work that races with it uses it."""
        work = Work(actor, step, known, lambda: poison(late))
        self._queues.add(work)
        for other, earlier in races:
            self._queues.turn_round(other, earlier, work)

    def end(self, moment: Known) -> None:
        """All is done, and from now on memory has its late values alone."""
        self.arrived(moment)
        self.waited(moment)
        for _, storage in memory.live():
            late = self._late.get(storage._cdata)
            if late is not None and late.nbytes() == storage.nbytes():
                storage.copy_(late)

    # How a call is computed again.

    def _repeat(self, call: Call, outputs: list[torch.Tensor | None]) -> None:
        """Compute a call on late values. A kernel that fails on poison leaves poison."""
        try:
            with self._as_then(call):
                results = tree_leaves(dispatch.run(call.func, call.args, call.kwargs))
                for into, values in zip(outputs, results, strict=True):
                    if into is not None:
                        again.put(values._host if is_virtual(values) else values, into)
        except (RuntimeError, IndexError):
            for into in outputs:
                if into is not None:
                    poison(into.untyped_storage())

    @contextlib.contextmanager
    def _as_then(self, call: Call) -> Iterator[None]:
        """What the dispatcher and the generator were when the call was made."""
        self._thread.repeats = True
        generator, state = call.drawn or (None, None)
        now = generator.get_state() if generator is not None else None
        try:
            if generator is not None:
                generator.set_state(state)
            with _disable_current_modes(), torch._C._ForceDispatchKeyGuard(*call.guard):
                yield
        finally:
            self._thread.repeats = False
            if generator is not None:
                generator.set_state(now)

    def _results(self, call: Call) -> list[torch.Tensor | None]:
        """Where the results go; None for those that are an argument, or share its memory."""
        given = {late._cdata for _, late in call.touched}
        outputs: list[torch.Tensor | None] = []
        for leaf in tree_leaves(call.result):
            if _is_dense(leaf):
                late = self._of(leaf._host)
                outputs.append(None if late._cdata in given else _on(late, leaf._host))
            else:
                outputs.append(leaf if _was_copied_to_host(call, leaf) else None)
        return outputs

    def _filled(self, call: Call) -> list[torch.Tensor]:
        """What a collective writes."""
        if call.plan.collective.functional:
            return [leaf._host for leaf in tree_leaves(call.result) if _is_dense(leaf)]
        kept = [] if call.plan.collective.name in _SEND[:-1] else call.inputs
        return [leaf._host for leaf, _ in call.touched if not any(leaf is one for one in kept)]

    def _brings(self, call: Call, hosts: list[torch.Tensor]) -> Brought:
        if call.plan.collective.functional:
            return Brought(hosts, lambda: [_WAIT(host) for host in hosts])  # type: ignore[misc]
        return Brought(hosts, functools.partial(self._wait_for, collectives.work(call.result)))

    def _of(self, host: torch.Tensor) -> Late:
        """The late values of a storage, which begin as its values where it is older than the delay."""
        storage = host.untyped_storage()
        brought = self._awaited.pop(storage._cdata, None)
        if brought is not None:
            brought.take()
        late = self._late.get(storage._cdata)
        if late is None:
            late = self._late[storage._cdata] = again.copy(storage)
        return late

    def _as_late(self, leaf: Any, of_host: Callable) -> Any:
        if _is_dense(leaf):
            return view(_on(self._of(leaf._host), leaf._host), leaf._ordinal)
        return leaf.clone() if type(leaf) is torch.Tensor and not of_host(leaf) else leaf

    def _drawn(self, plan: Any, args: tuple, kwargs: dict | None, touched: list) -> tuple[Any, torch.Tensor] | None:
        if plan.random is None or not touched or not plan.random(args, kwargs):
            return None
        generator = dispatch.named(plan, args, kwargs).get("generator") or rng.generator(touched[0][0]._ordinal)
        return generator, generator.get_state()


def _on(storage: torch.UntypedStorage, like: torch.Tensor) -> torch.Tensor:
    """The part of a storage that a tensor has of its own."""
    return again.on(storage, again.layout(like))


def _arrive(call: Call, brought: Brought, outputs: list[torch.Tensor]) -> None:
    """A collective brings what was sent, unless the late values were different: then what it brings is poison."""
    as_sent = all(torch.equal(late, values) for late, values in call.sent)
    for into, values in zip(outputs, brought.take(), strict=True):
        if as_sent:
            again.put(values, into)
        else:
            poison(into.untyped_storage())


def _inputs(plan: Any, given: dict[str, Any]) -> Iterator[VirtualTensor]:
    """The tensors that a collective sends."""
    if plan.collective is None:
        return
    for name, value in given.items():
        if name == "self" or name.startswith("input") or (name == "tensors" and plan.collective.name in _SEND):
            yield from filter(_is_dense, tree_leaves(value))


def _is_dense(leaf: Any) -> bool:
    return is_virtual(leaf) and leaf._host.layout is torch.strided


def _is_of_host(leaf: Any) -> bool:
    return type(leaf) is torch.Tensor and pinned.is_pinned(leaf.untyped_storage())


def _was_copied_to_host(call: Call, leaf: Any) -> bool:
    return call.func._schema.name == "aten::_to_copy" and type(leaf) is torch.Tensor and leaf.device.type == "cpu"
