"""End a hanging collective within seconds, with a diagnosis: which rank, which collective, which step, and the others.

Each rank notes which collective it enters, and as long as all goes well that is all. A thread beside it looks whether
one has been open for longer than `limit`. If so, it calls the roll through the store at which the ranks met; the
threads of the others answer, stuck or not; and the rank that waits raises `CollectiveHang` where it waits.

PyTorch's own time-out comes after 30 minutes with gloo and 10 with NCCL. It tells who waited, if that; not for whom.
"""

import atexit
import contextlib
import os
import sys
import threading
import time
from datetime import timedelta
from types import FrameType, TracebackType

from torch import distributed
from torch.distributed import PrefixStore, distributed_c10d
from torch.nn.parallel import DistributedDataParallel

from frcnn_lite.parallel.collective_log import TORCH, CollectiveLog, site
from frcnn_lite.parallel.hang_report import CollectiveHang, Entered, Position, State

ANSWER = 2.0  # seconds in which the others answer the roll
GRACE = 1.0  # seconds in which a rank that waits in Python raises; one that waits in native code is ended
HUNG = 70  # exit code of a rank that was ended
# Where the innermost Python frame lies of a rank that waits for others in native code.
NATIVE = tuple(os.path.join(TORCH, *part) for part in (("distributed",), ("nn", "parallel"), ("autograd",)))

NAMES = {"_engine_run_backward": "backward", "_pre_forward": "forward of DDP"}


class Watchdog:
    """`with Watchdog(limit=30) as dog:` around a training loop, in every rank, after `init_process_group`.

    limit: seconds that a rank may wait; more than the longest honest pause of any rank, such as an evaluation on rank 0
    alone. Set `dog.step` in the loop, and a diagnosis names it; `dog.watch(ddp)` names the gradients waited for.

    Raises CollectiveHang in the rank that waits. One that waits in native code, such as DDP's backward without `watch`,
    cannot be woken: it writes the diagnosis to stderr and exits with code 70.
    """

    def __init__(self, limit: float = 60.0) -> None:
        if limit <= 0:
            raise ValueError(f"limit must be a positive number of seconds, got {limit}")
        self.limit = limit
        self.log = CollectiveLog()
        self.hang: CollectiveHang | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._patrol, name="watchdog", daemon=True)

    @property
    def step(self) -> int | None:
        """The step of the training loop, for the diagnosis."""
        return self.log.step

    @step.setter
    def step(self, step: int) -> None:
        self.log.step = step

    def watch(self, ddp: DistributedDataParallel) -> None:
        """See `CollectiveLog.name_gradients`."""
        self.log.name_gradients(ddp)

    def __enter__(self) -> "Watchdog":
        if not distributed.is_initialized():
            raise RuntimeError("a watchdog watches the ranks of a process group: call init_process_group first")
        self._rank, self._ranks = distributed.get_rank(), tuple(range(distributed.get_world_size()))
        self._main = threading.get_ident()
        # A connection of its own: the process group's may be blocked in a get that waits for somebody.
        store = distributed_c10d._get_default_store().clone()
        store.set_timeout(timedelta(seconds=ANSWER))
        self._store = PrefixStore(f"watchdog {store.add(f'watchdogs of rank {self._rank}', 1)}", store)
        self.log.__enter__()
        self._thread.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self.log.__exit__()
        self._thread.join()
        if self.hang is None:
            why = "" if kind is None else kind.__name__
            self._publish(Position(self._rank, "left", self.step, None, tuple(self.log.entered), "", why))
            return
        # The work that is still pending would keep the interpreter from ending while the others live (torch 2.13).
        atexit.register(os._exit, HUNG)
        if error is not self.hang:
            raise self.hang from error

    def _patrol(self) -> None:
        """The thread: answer when another calls the roll, and call it when this rank has waited for too long."""
        answered, seen, since = False, None, time.monotonic()
        while not self._over.wait(min(0.2, self.limit / 5)):
            # The frame itself is kept, not its address, which the next call of the same function would take over.
            frame, now = self._native_frame(), time.monotonic()
            seen, since = (seen, since) if frame is seen else (frame, now)
            call = self.log.open_call
            waited = now - call.since if call else now - since if frame else 0.0
            try:
                if not answered and self._store.check(["roll"]):
                    self._publish(self._position())
                    answered = True
                if waited > self.limit:
                    self._end(self._call_roll())
                    return
            except RuntimeError:  # the process that held the store is gone
                self._end([self._position(), *(Position(r, "silent") for r in self._ranks if r != self._rank)])
                return

    def _call_roll(self) -> list[Position]:
        self._publish(self._position())
        self._store.set("roll", "")
        until = time.monotonic() + ANSWER
        while time.monotonic() < until and not self._store.check([f"at {rank}" for rank in self._ranks]):
            time.sleep(0.02)
        answered = [self._store.check([f"at {rank}"]) for rank in self._ranks]
        return [
            Position.from_json(self._store.get(f"at {rank}")) if answered[rank] else Position(rank, "silent")
            for rank in self._ranks
        ]

    def _end(self, positions: list[Position]) -> None:
        """Wake the main thread, which raises; where nothing wakes it, end the process."""
        self.hang = CollectiveHang(sorted(positions, key=lambda position: position.rank))
        self.log.break_off(self.hang)
        if not self._over.wait(GRACE):
            print(f"CollectiveHang: {self.hang}", file=sys.stderr, flush=True)
            os._exit(HUNG)

    def _position(self) -> Position:
        frame, native = sys._current_frames().get(self._main), self._native_frame()
        call = self.log.open_call
        entry = call.entry if call else None
        if entry is None and native is not None:
            name = native.f_code.co_name
            name = NAMES.get(name, name)
            entry = Entered(self.log.count(self._ranks) + 1, name, self.step, "", site(native), self._ranks)
        state: State = "waiting" if entry else "running"
        return Position(self._rank, state, self.step, entry, tuple(self.log.entered), site(frame))

    def _native_frame(self) -> FrameType | None:
        """The function of PyTorch that the main thread is in, if it is one in which ranks wait for each other."""
        frame = sys._current_frames().get(self._main)
        return frame if frame is not None and frame.f_code.co_filename.startswith(NATIVE) else None

    def _publish(self, position: Position) -> None:
        with contextlib.suppress(RuntimeError):  # nobody is left to read it
            self._store.set(f"at {self._rank}", position.to_json())
