"""End a hanging collective within seconds, with a diagnosis: which rank, which collective, which step, and the others.

Each rank notes which collective it enters, and as long as all goes well that is all. A thread beside it looks whether
one has been open for longer than `limit`. If so, it calls the roll through the store at which the ranks met; the
threads of the others answer, stuck or not; and the rank that waits raises `CollectiveHang` where it waits.

PyTorch's own time-out comes after 30 minutes with gloo and 10 with NCCL. At best it names the rank that waited, never
the rank it waited for.

In this file: what is said of a rank (`Entered`, `Position`), what follows from it (`diagnose`), and the `Watchdog`,
which notes collectives, looks at them from a thread, and breaks off a wait.
"""

import atexit
import contextlib
import functools
import inspect
import itertools
import os
import pickle
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import FrameType, FunctionType, TracebackType
from typing import Any, Literal, Self

import torch
from torch import distributed
from torch.distributed import PrefixStore, distributed_c10d
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.futures import Future
from torch.nn.parallel import DistributedDataParallel

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
BETWEEN = (TORCH, __file__)  # files whose frames are between a program and what it waits for
ANSWER = 2.0  # seconds in which the others answer the roll
GRACE = 1.0  # seconds in which a rank that waits in Python raises; one that waits in native code is ended
HUNG = 70  # exit code of a rank that was ended
# Folders with the innermost Python frame of a rank that waits for others in native code.
NATIVE = tuple(os.path.join(TORCH, *part) for part in (("distributed",), ("nn", "parallel"), ("autograd",)))

NAMES = {"_engine_run_backward": "backward", "_pre_forward": "forward of DDP"}
State = Literal["waiting", "running", "left", "silent"]


@dataclass(frozen=True)
class Entered:
    """A collective that a rank has entered.

    Attributes:
        number: counted from 1 in each group, so that equal numbers belong together.
        name: of the function of `torch.distributed`.
        step: of the training loop, None when the program did not say.
        tensor: shape and dtype in words.
        site: file and line of the caller.
        group: its ranks.
    """

    number: int
    name: str
    step: int | None
    tensor: str
    site: str
    group: tuple[int, ...]

    def __str__(self) -> str:
        tensor = f" of {self.tensor}" if self.tensor else ""
        step = "" if self.step is None else f", step {self.step}"
        return f"{self.name} #{self.number}{tensor}{step}, at {self.site}"


@dataclass(frozen=True)
class Position:
    """Where one rank stood when the roll was called.

    Attributes:
        state: "waiting" in a collective, "running" outside of any, "left" the block, or "silent": it did not answer.
        step: of the training loop, None when the program did not say.
        call: the collective that it waits in.
        entered: its last collectives, oldest first.
        site: file and line where it stood.
        why: the exception with which it left.
    """

    rank: int
    state: State
    step: int | None = None
    call: Entered | None = None
    entered: tuple[Entered, ...] = field(default=())
    site: str = ""
    why: str = ""

    def __str__(self) -> str:
        if self.state == "silent":
            return f"rank {self.rank} does not answer: it has ended, or is stopped"
        if self.state == "waiting" and self.call is not None:
            return f"rank {self.rank} waits in {self.call}"
        last = f"; its last collective was {self.entered[-1]}" if self.entered else "; it has entered no collective"
        if self.state == "left":
            when = "" if self.step is None else f" {'in' if self.why else 'after'} step {self.step}"
            return f"rank {self.rank} left{when}{f' with {self.why}' if self.why else ''}{last}"
        step = "" if self.step is None else f" in step {self.step},"
        return f"rank {self.rank} is{step} at {self.site}{last}"

    def has_entered(self, call: Entered) -> bool:
        """Whether it has come to the collective of that number in that group, whatever it called there."""
        return any(own.group == call.group and own.number >= call.number for own in self.entered)


class CollectiveHang(RuntimeError):
    """A rank has waited in a collective for longer than its limit; `positions` says where every rank stood."""

    def __init__(self, positions: Sequence[Position]) -> None:
        self.positions = tuple(positions)
        super().__init__(diagnose(self.positions))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.positions,)  # across processes with its positions, not as its text alone


def diagnose(positions: Sequence[Position]) -> str:
    """Say in one line what the ranks wait for, and then in one line for each rank where it is.

    A rank that waits is a victim. The cause is a rank that has not come to the same collective, or that came to a
    different one under the same number; a last line says where ranks first called from different lines of the program,
    since that is where a call was left out. Raises ValueError when there is no position.
    """
    if not positions:
        raise ValueError("`positions` must hold one for each rank, got none")
    return "\n".join([_cause(positions), *(f"  {position}" for position in positions), *_parted(positions)])


def _cause(positions: Sequence[Position]) -> str:
    waiting = [p for p in positions if p.state == "waiting" and p.call is not None]
    if not waiting:
        return "no rank waits in a collective"
    # The earliest: who waits in a later one has passed it.
    victim = min(waiting, key=lambda p: p.call.number if p.call else 0)
    call = victim.call
    assert call is not None
    members = [p for p in positions if p.rank in call.group and p.rank != victim.rank]
    for other in members:
        theirs = next((own for own in other.entered if (own.group, own.number) == (call.group, call.number)), None)
        if theirs is not None and (theirs.name, theirs.tensor) != (call.name, call.tensor):
            return (
                f"rank {victim.rank} and rank {other.rank} entered different collectives as #{call.number}: "
                f"{call.name} of {call.tensor} at {call.site}, {theirs.name} of {theirs.tensor} at {theirs.site}"
            )
    absent = [p.rank for p in members if not p.has_entered(call)]
    where = f"in {call.name} #{call.number}" + ("" if call.step is None else f" of step {call.step}")
    if not absent:
        return f"all ranks of the group are {where}, and it does not end: look at the network and the devices"
    ranks = "rank" if len(absent) == 1 else "ranks"
    return f"rank {victim.rank} waits {where} for {ranks} {', '.join(map(str, absent))}"


def _parted(positions: Sequence[Position]) -> list[str]:
    """The earliest collective that two ranks entered from different lines: an `if rank == 0`, more often than not."""
    first: dict[tuple[tuple[int, ...], int], Entered] = {}
    parted = []
    for position in positions:
        for entry in position.entered:
            other = first.setdefault((entry.group, entry.number), entry)
            if other.site != entry.site:
                parted.append((entry.number, f"{other.name} at {other.site}, {entry.name} at {entry.site}"))
    return [f"  ranks parted at #{number}: {words}" for number, words in sorted(parted)[:1]]


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
        work = self.work
        if work is not None and work.is_completed():
            self.over, self.work = True, None  # the work holds its tensors, which may be a whole layer
        return not self.over


class Watchdog:
    """`with Watchdog(limit=30) as dog:` around a training loop, in every rank, after `init_process_group`.

    Set `dog.step` in the loop, and a diagnosis names it; `dog.watch(ddp)` names the gradients waited for. The functions
    of `torch.distributed` are wrapped for the block and put back after it. Not seen: send and recv, a function imported
    by name before the block, and what native code starts, unless `watch` has told it to ask.

    Args:
        limit: seconds that a rank may wait. It must be more than the longest honest pause of any rank, such as an
            evaluation on rank 0 alone.
        on_hang: is called with the error in the rank that waits, from the watchdog's thread and before the rank is
            ended.

    Attributes:
        entered: the last collectives of this rank, oldest first.

    Raises:
        CollectiveHang: in the rank that waits. One that waits in native code, such as DDP's backward without `watch`,
            cannot be woken: it writes the diagnosis to stderr and exits with code 70.
    """

    def __init__(self, limit: float = 60.0, on_hang: Callable[[CollectiveHang], object] | None = None) -> None:
        if limit <= 0:
            raise ValueError(f"`limit` must be a positive number of seconds, got {limit}")
        self.limit, self.on_hang = limit, on_hang
        self.step: int | None = None
        self.entered: deque[Entered] = deque(maxlen=HISTORY)
        self.hang: CollectiveHang | None = None
        self._counts: Counter[tuple[int, ...]] = Counter()
        self._calls: list[Call] = []
        self._label = ""
        self._inside = False
        self._originals: list[tuple[Any, str, Any]] = []
        self._store_is_gone = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._patrol, name="watchdog", daemon=True)

    def __enter__(self) -> Self:
        if not distributed.is_initialized():
            raise RuntimeError("a watchdog watches the ranks of a process group: call init_process_group first")
        self._rank, self._ranks = distributed.get_rank(), tuple(range(distributed.get_world_size()))
        self._main = threading.get_ident()
        # A connection of its own: the process group's may be blocked in a get that waits for somebody.
        store = distributed_c10d._get_default_store().clone()
        store.set_timeout(timedelta(seconds=ANSWER))
        self._store = PrefixStore(f"watchdog {store.add(f'watchdogs of rank {self._rank}', 1)}", store)
        self._thread.start()
        for module, name in itertools.product((distributed, distributed_c10d), COLLECTIVES):
            if original := getattr(module, name, None):
                self._originals.append((module, name, original))
                setattr(module, name, self._noting(name, original))
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        while self._originals:
            module, name, original = self._originals.pop()
            setattr(module, name, original)
        self._thread.join()
        if self.hang is None:
            why = "" if kind is None else kind.__name__
            self._publish(Position(self._rank, "left", self.step, None, tuple(self.entered), "", why))
            return
        # The work that is still pending would keep the interpreter from ending while the others live (torch 2.13).
        atexit.register(os._exit, HUNG)
        if error is not self.hang:
            raise self.hang from error

    def watch(self, ddp: DistributedDataParallel) -> None:
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

    @property
    def open_call(self) -> Call | None:
        """The earliest collective whose data has not come yet."""
        return next((call for call in self._calls if call.is_open), None)

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
                call.work = work = collective(*given.args, **given.kwargs)
            except BaseException:
                call.over = True
                raise
            finally:
                self._inside = False
            if work is not None and not wants_work:
                self._wait(call, work)
                return None
            if work is None or _future_of(work) is None:
                call.over, call.work = True, None
            return work

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

    def _wait(self, call: Call, work: Any) -> None:
        future = _future_of(work)
        if future is not None:
            done = threading.Event()
            call.wake = done.set
            future.add_done_callback(lambda _: done.set())
            if self.hang is None:
                done.wait()
            if self.hang is not None and call.is_open:
                raise self.hang
        work.wait()
        if future is None:
            call.over, call.work = True, None
        self._calls = [other for other in self._calls if other.is_open]

    def _breakable(self, call: Call, future: Future[Any]) -> Future[Any]:
        """A future for native code to wait for: it ends when `future` does, or with `hang`."""
        if distributed.get_backend() != "gloo":
            return future  # with NCCL a future is done when the work is queued: it is the stream that waits
        woken: Future[None] = Future()
        once = threading.Lock()

        def wake(_: Any = None) -> None:
            if once.acquire(blocking=False):
                woken.set_result(None)

        def result(_: Any) -> torch.Tensor:
            if self.hang is not None and call.is_open:
                raise self.hang
            return future.value()

        call.wake = wake
        future.add_done_callback(wake)
        return woken.then(result)

    def _patrol(self) -> None:
        """The thread: answer when another calls the roll, and call it when this rank has waited for too long."""
        answered, since = False, time.monotonic()
        while not self._over.wait(min(0.2, self.limit / 5)):
            now = time.monotonic()
            if not self._is_in_the_same_call():
                since = now
            call = self.open_call
            waited = now - (call.since if call else since)
            if not answered and self._is_there("roll"):
                self._publish(self._position())
                answered = True
            if waited > self.limit:
                self._end(self._call_roll())
                return

    def _call_roll(self) -> list[Position]:
        """The position of each rank; who does not answer in time, or has no store to answer through, is silent."""
        own = self._position()
        self._publish(own)
        with contextlib.suppress(RuntimeError):
            self._store.set("roll", "")
        until = time.monotonic() + ANSWER
        while time.monotonic() < until and not self._is_there(*(f"at {rank}" for rank in self._ranks)):
            time.sleep(0.02)
        return [own if rank == self._rank else self._position_of(rank) for rank in self._ranks]

    def _position_of(self, rank: int) -> Position:
        """The answer of another rank."""
        return pickle.loads(self._store.get(f"at {rank}")) if self._is_there(f"at {rank}") else Position(rank, "silent")

    def _end(self, positions: list[Position]) -> None:
        """Wake the main thread, which raises; where nothing wakes it, end the process."""
        self.hang = CollectiveHang(positions)
        if self.on_hang is not None:
            self.on_hang(self.hang)
        for call in self._calls:
            call.wake()
        if not self._over.wait(GRACE):
            print(f"CollectiveHang: {self.hang}", file=sys.stderr, flush=True)
            os._exit(HUNG)

    def _position(self) -> Position:
        frame, native = sys._current_frames().get(self._main), self._native_frame()
        call = self.open_call
        entry = call.entry if call else None
        if entry is None and native is not None:
            name = native.f_code.co_name
            name = NAMES.get(name, name)
            entry = Entered(self._counts[self._ranks] + 1, name, self.step, "", site(native), self._ranks)
        state: State = "waiting" if entry else "running"
        return Position(self._rank, state, self.step, entry, tuple(self.entered), site(frame))

    def _native_frame(self) -> FrameType | None:
        """The function of PyTorch that the main thread is in, if it is one in which ranks wait for each other."""
        frame = _shown(sys._current_frames().get(self._main))
        return frame if frame is not None and frame.f_code.co_filename.startswith(NATIVE) else None

    def _is_in_the_same_call(self) -> bool:
        """Whether the main thread is in a function in which ranks wait, and in the same call of it as at the last look.

        A frame that is kept would keep the tensors of its call in memory, and its address is that of the next call,
        too. So the frame is marked, by a switch that a debugger alone reads, and let go at once.
        """
        frame = self._native_frame()
        if frame is None:
            return False
        same, frame.f_trace_lines = not frame.f_trace_lines, False
        return same

    def _is_there(self, *keys: str) -> bool:
        try:
            return not self._store_is_gone and self._store.check(list(keys))
        except RuntimeError:  # the process that held it has ended; torch would warn of that at each look
            self._store_is_gone = True
            return False

    def _publish(self, position: Position) -> None:
        with contextlib.suppress(RuntimeError):  # nobody is left to read it
            self._store.set(f"at {self._rank}", pickle.dumps(position))  # type: ignore[arg-type]  # bytes, too


def _future_of(work: Any) -> Future[Any] | None:
    """None for gloo's reduce_scatter (torch 2.15), whose Work does not know either whether it is completed."""
    try:
        return work.get_future()
    except RuntimeError:
        return None


def _shown(frame: FrameType | None) -> FrameType | None:
    """The innermost frame that is not hidden: a module that wraps PyTorch's functions sets `__tracebackhide__`."""
    while frame is not None and "__tracebackhide__" in frame.f_globals:
        frame = frame.f_back
    return frame


def site(frame: FrameType | None) -> str:
    """File and line of the innermost frame of the program itself."""
    while (frame := _shown(frame)) is not None and frame.f_code.co_filename.startswith(BETWEEN):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}" if frame is not None else ""
