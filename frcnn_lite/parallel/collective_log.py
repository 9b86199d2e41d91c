"""A note of every collective that this rank enters, and a way to break off the one it waits in."""

import functools
import inspect
import itertools
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

import torch
from torch import distributed
from torch.distributed import distributed_c10d
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.futures import Future
from torch.nn.parallel import DistributedDataParallel

from frcnn_lite.parallel.hang_report import Entered

# By their signature, since their names change: torch 2.15 gathers objects with all_gather_single. Not the deprecated
# ..._coalesced, which return no Work.
COLLECTIVES = tuple(
    name
    for name, function in vars(distributed_c10d).items()
    if type(function) is FunctionType
    and "async_op" in inspect.signature(function).parameters
    and not name.startswith("_")
    and not name.endswith("_coalesced")
)
HISTORY = 12  # collectives that a rank remembers
TORCH = str(Path(torch.__file__).parent)
BETWEEN = (TORCH, __file__)  # files whose frames stand between a program and what it waits for


@dataclass(eq=False)
class Call:
    """A collective on its way: open from the moment it is entered until its data is there."""

    entry: Entered
    since: float
    work: Any = None
    over: bool = False  # it raised, this rank is not in its group, or its work cannot be asked
    wake: Callable[[], None] = lambda: None

    @property
    def is_open(self) -> bool:
        return not self.over and not (self.work is not None and self.work.is_completed())


@dataclass(eq=False)
class CollectiveLog:
    """`with CollectiveLog() as log:` notes the collectives of `torch.distributed` that this rank enters in the block.

    step: set by the training loop, noted with each; entered: the last ones, oldest first. `log.break_off(error)`, from
    another thread, raises `error` in the thread that waits in one.

    The functions of `torch.distributed` are wrapped for the block and put back after it. Not seen: send and recv, a
    function imported by name before the block, and what native code starts, unless `name_gradients` has told it to ask.
    """

    step: int | None = None
    entered: deque[Entered] = field(default_factory=lambda: deque(maxlen=HISTORY), init=False)
    broken: BaseException | None = field(default=None, init=False)
    _counts: Counter[tuple[int, ...]] = field(default_factory=Counter, init=False)
    _calls: list[Call] = field(default_factory=list, init=False)
    _label: str = field(default="", init=False)
    _inside: bool = field(default=False, init=False)
    _originals: list[tuple[Any, str, Any]] = field(default_factory=list, init=False)

    def __enter__(self) -> "CollectiveLog":
        for module, name in itertools.product((distributed, distributed_c10d), COLLECTIVES):
            if original := getattr(module, name, None):
                self._originals.append((module, name, original))
                setattr(module, name, self._noting(name, original))
        return self

    def __exit__(self, *_: object) -> None:
        while self._originals:
            module, name, original = self._originals.pop()
            setattr(module, name, original)

    @property
    def open_call(self) -> Call | None:
        """The earliest collective whose data has not come yet."""
        return next((call for call in self._calls if call.is_open), None)

    def count(self, group: tuple[int, ...]) -> int:
        """How many collectives of this group of ranks have been entered."""
        return self._counts[group]

    def break_off(self, error: BaseException) -> None:
        """Raise `error` in whoever waits in a collective."""
        self.broken = error
        for call in self._calls:
            call.wake()

    def name_gradients(self, ddp: DistributedDataParallel) -> None:
        """Note the all_reduce of each bucket of gradients, under the names of its parameters.

        DDP starts them from native code and asks a hook, if it has one. The hook cannot be taken off; after the block
        it does what DDP does without it.
        """
        # The hook must not hold `ddp`, which holds the hook: it would never be freed, nor its group's connections.
        names = {parameter: name for name, parameter in ddp.module.named_parameters()}
        group = ddp.process_group

        def reduce(_: None, bucket: distributed.GradBucket) -> Future[torch.Tensor]:
            self._label = f" of gradients ({', '.join(names[p] for p in bucket.parameters())})"
            try:
                future = allreduce_hook(group, bucket)
            finally:
                self._label = ""
            return self._breakable(self._calls[-1], future) if self._originals else future

        ddp.register_comm_hook(None, reduce)

    def _noting(self, name: str, collective: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(collective)

        @functools.wraps(collective)
        def note_and_call(*args: Any, **kwargs: Any) -> Any:
            if self._inside:  # some call each other; the caller's is the name to note
                return collective(*args, **kwargs)
            given = signature.bind(*args, **kwargs)
            wants_work = given.arguments.get("async_op", False)
            given.arguments["async_op"] = True  # to wait for it here, where the wait can be broken off
            call = self._note(name, given.arguments, sys._getframe(1))
            self._inside = True
            try:
                call.work = collective(*given.args, **given.kwargs)
            except BaseException:
                call.over = True
                raise
            finally:
                self._inside = False
            if call.work is not None and not wants_work:
                self._wait(call)
                return None
            call.over = call.work is None or _future_of(call.work) is None
            return call.work

        return note_and_call

    def _note(self, name: str, arguments: dict[str, Any], caller: FrameType) -> Call:
        tensor = next((value for value in arguments.values() if isinstance(value, torch.Tensor)), None)
        words = "" if tensor is None else f"{tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"
        group = tuple(distributed.get_process_group_ranks(arguments.get("group")))
        self._counts[group] += 1
        entry = Entered(self._counts[group], name + self._label, self.step, words, site(caller), group)
        self.entered.append(entry)
        self._calls = [call for call in self._calls if call.is_open]
        self._calls.append(Call(entry, time.monotonic()))
        return self._calls[-1]

    def _wait(self, call: Call) -> None:
        future = _future_of(call.work)
        if future is not None:
            done = threading.Event()
            call.wake = done.set
            future.add_done_callback(lambda _: done.set())
            if self.broken is None:
                done.wait()
            if self.broken is not None and call.is_open:
                raise self.broken
        call.work.wait()
        call.over = future is None

    def _breakable(self, call: Call, future: Future[Any]) -> Future[Any]:
        """A future for native code to wait for: it ends when `future` does, or with the error of `break_off`."""
        if distributed.get_backend() != "gloo":
            return future  # with NCCL a future is done when the work is queued: it is the stream that waits
        woken: Future[None] = Future()
        once = threading.Lock()

        def wake(_: Any = None) -> None:
            if once.acquire(blocking=False):
                woken.set_result(None)

        def result(_: Any) -> torch.Tensor:
            if self.broken is not None and call.is_open:
                raise self.broken
            return future.value()

        call.wake = wake
        future.add_done_callback(wake)
        return woken.then(result)


def _future_of(work: Any) -> Future[Any] | None:
    """None for gloo's reduce_scatter (torch 2.15), whose Work does not know either whether it is completed."""
    try:
        return work.get_future()
    except RuntimeError:
        return None


def site(frame: FrameType | None) -> str:
    """File and line of the innermost frame of the program itself."""
    # A module that puts functions of its own around PyTorch's says so in the way that pytest has made common.
    while frame is not None and (
        frame.f_code.co_filename.startswith(BETWEEN) or "__tracebackhide__" in frame.f_globals
    ):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}" if frame is not None else ""
