"""Watch this process for races between streams: `vgpu.races()`.

While nobody watches, nothing of this is called: the functions that tell the detector are put in place when somebody
begins, and taken away when he ends. The values are computed as always, in the order of the program.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from vgpu.base import variables
from vgpu.base.patches import Patches
from vgpu.machine import memory, pinned, streams
from vgpu.operators import dispatch
from vgpu.operators.again import poison
from vgpu.racing import collectives
from vgpu.racing.backward import Backward
from vgpu.racing.clocks import HOST
from vgpu.racing.delay import Delay
from vgpu.racing.detector import Detector, Made, Touched
from vgpu.racing.report import RaceError
from vgpu.tensors.tensor import VirtualTensor, is_virtual

VARIABLE = "VGPUS_RACES"  # children of a process that is watched are watched, too, in the same way:
OFF, RAISE, DELAY = "0", "1", "delay"
_ABOUT_SHAPES = frozenset(
    ("_has_compatible_shallow_copy_type", "is_same_size", "is_set_to", "_wrap_tensor_autograd", "record_stream")
)
_READS_DIRECTLY = ("numpy", "tolist", "__array__")  # of tensors of the host, without an operator
_READS_MEMORY = ("__repr__", "__deepcopy__", "__reduce_ex__")  # of tensors of a device, without an operator
_watching: list[Watch] = []


@contextlib.contextmanager
def races(error: bool = True, delay: bool = False) -> Iterator[list[RaceError]]:
    """Inside the block, memory that two streams use without order is an error at the second of the two lines.

    It covers streams, events, `record_stream`, copies between pinned memory and a device, the streams of process
    groups, and memory that is freed while a stream still uses it. Operators of the host on pinned memory are seen in
    the thread that began the block.

    Args:
        error: raise the first race. False collects all of them.
        delay: let streams be as late as they may be. What they were given is done when the host waits for it, the later
            of two racing accesses first, and memory is poison until then, so a race gives wrong numbers. Races are
            collected, not raised.

    Yields:
        The races so far.

    Raises:
        RaceError: with the lines of both accesses and the repair.
    """
    watch = Watch(error and not delay, Delay() if delay else None)
    watch.begin()
    try:
        with _Host(watch):
            yield watch.detector.races
            watch.done()
    finally:
        watch.end()


def check() -> str:
    """How VGPUS_RACES has this process watched.

    Raises:
        ValueError: if it says something else than "0", "1" or "delay".
    """
    return variables.choice(VARIABLE, OFF, RAISE, DELAY)


def begin_if_told() -> None:
    """Watch this process to its end, in all threads but for the host's operators, where VGPUS_RACES says so."""
    how = check()
    if how != OFF and not _watching:
        watch = Watch(how == RAISE, Delay() if how == DELAY else None)
        watch.begin()
        _Host(watch).__enter__()


class _Thread(threading.local):
    seen = 0  # operators of this thread
    makes = ""  # the operator that is running
    fills = False  # whether that does nothing but make memory


class Watch:
    """The functions that tell a detector what happens."""

    def __init__(self, error: bool, delay: Delay | None = None) -> None:
        self.detector = Detector(delay)
        self._delay = delay
        self._error, self._told = error, 0
        self._patches = Patches()
        self._thread = _Thread()
        self._backward = Backward(self.detector)

    def begin(self) -> None:
        """Put them in place."""
        if _watching:
            raise RuntimeError("races are being looked for already: `vgpu.races()` cannot be nested")
        _watching.append(self)
        self._run = VirtualTensor.run_operator
        VirtualTensor.run_operator = staticmethod(self._operator)
        memory.witness = self
        set_ = self._patches.set
        set_(streams.Event, "record", self._around(streams.Event.record, self._recorded))
        set_(streams.Event, "wait", self._around(streams.Event.wait, self._waited))
        set_(streams.Event, "query", self._around(streams.Event.query, self._queried))
        set_(streams.Event, "synchronize", self._around(streams.Event.synchronize, self._host_waited_for_event))
        set_(streams.Stream, "query", self._around(streams.Stream.query, self._stream_queried))
        set_(streams.Stream, "synchronize", self._around(streams.Stream.synchronize, self._host_waited_for_stream))
        set_(streams, "make_current", self._first(self._backward.changed, streams.make_current))
        set_(streams, "synchronize", self._around(streams.synchronize, self._host_waited_for_device))
        set_(VirtualTensor, "record_stream", self._around(VirtualTensor.record_stream, self._record_stream))
        for name in _READS_DIRECTLY:
            set_(torch.Tensor, name, self._before(getattr(torch.Tensor, name)))
        collectives.install(self._patches, self.detector)
        if self._delay is not None:
            self._delay.install(self._patches)
            for name in _READS_MEMORY:
                set_(VirtualTensor, name, self._seeing(getattr(VirtualTensor, name)))

    def done(self) -> None:
        """The block has ended without an error: let everything be done."""
        end = self.detector.end()
        self.raise_new()
        if self._delay is not None:
            self._delay.end(end)

    def end(self) -> None:
        """Take them away."""
        self._patches.restore()
        # torch._dynamo, where it was imported in the block, keeps one of them, and so this: tracebacks hold tensors.
        self.detector.races = []
        VirtualTensor.run_operator = staticmethod(self._run)
        memory.witness = None
        _watching.remove(self)

    def raise_new(self) -> None:
        """Raise the first race that nobody has been told of."""
        found, self._told = self.detector.races[self._told :], len(self.detector.races)
        if found and self._error:
            raise found[0]

    # What happens on devices.

    def _operator(self, func: Any, args: tuple, kwargs: dict | None) -> Any:
        if self._delay is not None and self._delay.repeats:
            return self._run(func, args, kwargs)
        plan, thread = dispatch.plan_of(func), self._thread
        before, outer = thread.seen, (thread.makes, thread.fills)
        thread.makes, thread.fills = func._schema.name.partition("::")[2], reads_nothing(plan, func)
        late = None if self._delay is None or thread.fills else self._late(plan, func, args, kwargs)
        try:
            result = self._run(func, args, kwargs)
        finally:
            thread.makes, thread.fills = outer
        if thread.seen == before and not reads_nothing(plan, func):  # else its parts were seen
            thread.seen += 1
            if late is not None:
                late(result)
            self._launched(plan, func, args, kwargs, result)
            self.raise_new()
        return result

    def _late(self, plan: Any, func: Any, args: tuple, kwargs: dict | None) -> Callable[[Any], None]:
        """Prepare for an operator whose work is delayed; gives what is to be called with its result."""
        delay: Any = self._delay
        leaves = tree_leaves((args, kwargs))
        virtual = [leaf for leaf in leaves if is_virtual(leaf)]
        given = dispatch.named(plan, args, kwargs)
        written = [leaf for key in plan.written for leaf in tree_leaves(given.get(key)) if type(leaf) is torch.Tensor]
        waits = (plan.waits is not None and plan.waits(given)) or any(
            leaf._host.layout is not torch.strided for leaf in virtual
        )
        if waits or not all(self._is_ours(leaf, True) for leaf in written):
            self.detector.wait_for(HOST, [self._backward.stream(leaf._ordinal) for leaf in virtual])
            dense = [leaf for leaf in virtual if leaf._host.layout is torch.strided]
            delay.see(dense)
            return lambda result: delay.saw(dense, result)
        call = delay.keep(plan, func, args, kwargs, lambda leaf: self._is_ours(leaf, True))
        return lambda result: delay.returned(call, result)

    def _launched(self, plan: Any, func: Any, args: tuple, kwargs: dict | None, result: Any) -> None:
        given = dict(zip(plan.names, args, strict=False)) | (kwargs or {})
        name = func._schema.name.partition("::")[2]
        touched = [one for key, value in given.items() for one in self._touched(value, writes=key in plan.written)]
        touched += [Touched(one, None, writes=True) for one in self._copied(result, given)]
        ordinals = list(dict.fromkeys(one.ordinal for one in touched if one.ordinal is not None))
        if not ordinals:
            return
        there = [leaf for leaf in tree_leaves(result) if is_virtual(leaf) and leaf._ordinal not in ordinals]
        touched += [one for leaf in there for one in self._touched(leaf, writes=True)]  # a copy to a different device
        ordinal = ordinals[-1] if name == "copy_" and len(ordinals) > 1 else ordinals[0]
        stream = self._backward.stream(ordinal)
        self._given(stream, plan, func, given, touched, result)
        self._backward.done(ordinal, stream)

    def _given(
        self,
        stream: streams.Stream,
        plan: Any,
        func: Any,
        given: dict[str, Any],
        touched: list[Touched],
        result: Any,
    ) -> None:
        """An operator was given to a stream."""
        if collectives.is_wait(func):
            for one in touched:
                self.detector.wait_for_memory(stream, one.host.untyped_storage(), collectives.Group)
            return
        if plan.collective is not None:
            collectives.launched(self.detector, plan, given, touched, result, stream)
            return
        ordinals = {one.ordinal for one in touched if one.ordinal not in (None, stream.device_index)}
        others = [streams.current(ordinal) for ordinal in ordinals if ordinal is not None]
        self.detector.wait_for(stream, list(others))  # a copy between devices runs on one, after and before the other
        self.detector.launch(stream, func._schema.name.partition("::")[2], touched)
        for other in others:
            self.detector.wait_for(other, [stream])
        if plan.waits is not None and plan.waits(given):
            self.detector.wait_for(HOST, [stream])

    def _touched(self, value: Any, writes: bool) -> Iterator[Touched]:
        for leaf in tree_leaves(value):
            if is_virtual(leaf) and leaf._host.layout is torch.strided:
                yield Touched(leaf._host, leaf._ordinal, writes)
            elif type(leaf) is torch.Tensor and leaf.layout is torch.strided and self._is_ours(leaf, writes):
                yield Touched(leaf, None, writes)

    def _copied(self, result: Any, given: dict[str, Any]) -> Iterator[torch.Tensor]:
        """Tensors of the host that a copy has made; one that need not be waited for is in pinned memory."""
        known = {id(leaf) for leaf in tree_leaves(list(given.values()))}
        for leaf in tree_leaves(result):
            if type(leaf) is torch.Tensor and id(leaf) not in known and leaf.layout is torch.strided:
                self._until_it_dies(leaf.untyped_storage())
                yield leaf

    def _is_ours(self, tensor: torch.Tensor, writes: bool) -> bool:
        """Whether the host's memory can be in use by a stream: pinned memory, and what a copy has made of it."""
        storage = tensor.untyped_storage()
        if pinned.is_pinned(storage):
            self._until_it_dies(storage)
            return True
        return self.detector.knows(storage)

    def _is_of_the_host(self, storage: torch.UntypedStorage) -> bool:
        """Whether a stream has touched memory of the host. What belongs to a device is computed by the host, too."""
        return self.detector.knows(storage) and memory.ordinal_of(storage) is None

    def _until_it_dies(self, storage: torch.UntypedStorage) -> None:
        if not self.detector.knows(storage):
            weakref.finalize(storage, self.detector.forget, storage._cdata)

    # What memory.py tells.

    def allocated(self, allocation: memory.Allocation, storage: torch.UntypedStorage) -> None:
        """A storage has come to a device."""
        stream = self._backward.stream(allocation.ordinal)
        # Factories such as torch.rand reserve memory, too, and an operator of its own fills it.
        makes = self._thread.makes
        reserves = is_empty(makes) or not makes
        made = Made(bool(makes), reserves, self._thread.fills and not reserves)
        self.detector.born(storage, stream, allocation.nbytes, made)
        self._backward.done(allocation.ordinal, stream)

    def freed(self, allocation: memory.Allocation) -> None:
        """A storage has gone."""
        self.detector.dead(allocation.key)

    def made(self, func: Any, tensor: VirtualTensor) -> None:
        """A factory has made a tensor: what nobody has written is not to look like a result."""
        if self._delay is not None and is_empty(func._schema.name.partition("::")[2]):
            poison(tensor._host.untyped_storage())

    # Who waits for whom.

    def _recorded(self, event: streams.Event, stream: streams.Stream | None = None) -> None:
        stream = stream or streams.current(event.device.index)  # type: ignore[union-attr]  # record has set it
        event.moment = self.detector.moment(stream)  # type: ignore[attr-defined]

    def _waited(self, event: streams.Event, stream: streams.Stream | None = None) -> None:
        stream = stream or streams.current(dispatch.devices.current())
        self.detector.wait(stream, getattr(event, "moment", {}))

    def _queried(self, event: streams.Event, answer: bool = False) -> None:
        if answer:
            self._host_waited_for_event(event)

    def _host_waited_for_event(self, event: streams.Event) -> None:
        self.detector.wait(HOST, getattr(event, "moment", {}))

    def _stream_queried(self, stream: streams.Stream, answer: bool = False) -> None:
        if answer:
            self._host_waited_for_stream(stream)

    def _host_waited_for_stream(self, stream: streams.Stream) -> None:
        self.detector.wait_for(HOST, [stream])

    def _host_waited_for_device(self, ordinal: int) -> None:
        self.detector.wait_for(HOST, self.detector.streams_of(ordinal))

    def _record_stream(self, tensor: VirtualTensor, stream: Any) -> None:
        self.detector.recorded(tensor._host.untyped_storage(), stream)

    def _around(self, function: Callable, tell: Callable) -> Callable:
        """The function, after which the detector is told; a function that answers has its answer told, too."""

        @functools.wraps(function)
        def told(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            tell(*args, **kwargs, **({} if result is None or not isinstance(result, bool) else {"answer": result}))
            self.raise_new()  # what the host has written before it waited
            return result

        return told

    def _first(self, tell: Callable, function: Callable) -> Callable:
        """The function, before which somebody is told."""

        @functools.wraps(function)
        def told(*args: Any) -> Any:
            tell(*args)
            return function(*args)

        return told

    def _seeing(self, function: Callable) -> Callable:
        """A method for which the host reads memory of a device without an operator."""

        @functools.wraps(function)
        def seen(tensor: VirtualTensor, *args: Any, **kwargs: Any) -> Any:
            if self._delay is not None and tensor._host.layout is torch.strided:
                self.detector.wait_for(HOST, [streams.current(tensor._ordinal)])
                self._delay.see([tensor])
            return function(tensor, *args, **kwargs)

        return seen

    def _before(self, function: Callable) -> Callable:
        """A method that reads memory of the host without an operator."""

        @functools.wraps(function)
        def told(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if type(tensor) is torch.Tensor:
                self.host(function.__name__, [tensor], written=frozenset())
                if function.__name__ != "tolist" and pinned.is_pinned(tensor.untyped_storage()):
                    self.detector.share(tensor.untyped_storage())
            return function(tensor, *args, **kwargs)

        return told

    def host(self, name: str, tensors: list[torch.Tensor], written: frozenset[int]) -> None:
        """The host reads tensors, and writes those whose identity is in `written`."""
        touched = [
            Touched(one, None, id(one) in written)
            for one in tensors
            if one.layout is torch.strided and self._is_of_the_host(one.untyped_storage())
        ]
        if touched:
            self.detector.launch(HOST, name, touched)
            self.raise_new()


def is_empty(name: str) -> bool:
    """Whether an operator of this name gives memory and writes nothing to it."""
    return name.removeprefix("new_").startswith("empty")


def reads_nothing(plan: Any, func: Any) -> bool:
    """Whether an operator only makes views, or looks at shapes: what it makes is told by memory.py."""
    name = func._schema.name.partition("::")[2]
    of_new = name.endswith("_like") or name.startswith("new_")
    return plan.views or of_new or name in _ABOUT_SHAPES or func.namespace == "prim"


class _Host(TorchDispatchMode):
    """Operators of the host, of which those on memory that a stream may use are told."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        leaves = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        if leaves and not any(map(is_virtual, leaves)) and all(type(leaf) is torch.Tensor for leaf in leaves):
            plan = dispatch.plan_of(func)
            if not reads_nothing(plan, func):
                given = dict(zip(plan.names, args, strict=False)) | (kwargs or {})
                written = frozenset(id(leaf) for key in plan.written for leaf in tree_leaves(given.get(key)))
                self._watch.host(func._schema.name.partition("::")[2], leaves, written)
        return func(*args, **(kwargs or {}))
