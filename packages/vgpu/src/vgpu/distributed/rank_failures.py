"""Which rank failed first where ranks are threads, and of one that waited in vain: for whom, and where those are."""

from __future__ import annotations

import re
import sys
import threading
import time
import traceback
import types
from collections.abc import Iterator

from vgpu.base import program

__tracebackhide__ = True  # base/tracebacks.py sees what is loaded by then, and this file is loaded when it is used
# What gloo and its stores say where a rank does not come, or is gone: each group, and each store, has its own words.
_WAITED = re.compile(r"timed? ?out|timeout|Connection (closed|reset) by peer|gloo/transport", re.IGNORECASE)
_TIME = re.compile(r"timed? ?out|timeout", re.IGNORECASE)
_COLLECTIVES = "distributed_c10d.py", "_functional_collectives.py"


class Failures:
    """The errors of ranks, in the order in which they came.

    threads: those of the ranks, by rank; ended: the ranks whose function has returned or raised.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.threads: list[threading.Thread] = []
        self.ended: set[int] = set()
        self._first: BaseException | None = None
        self._since = 0.0
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return self._first is not None

    def older_than(self, seconds: float) -> bool:
        """True where a rank failed so long ago."""
        return self._first is not None and time.monotonic() - self._since > seconds

    def add(self, rank: int, error: BaseException) -> None:
        """Keep the error of a rank if it is the first, and let go of all that its functions held."""
        with self._lock:
            if self._first is None:
                self._first, self._since = self._explained(rank, error), time.monotonic()
        for one in _chain(error):
            traceback.clear_frames(one.__traceback__)

    def raise_first(self) -> None:
        """Raise the first error, if there is one."""
        if self._first is not None:
            raise self._first

    def _explained(self, rank: int, error: BaseException) -> BaseException:
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        if isinstance(error, SystemExit):
            error = _caused(RuntimeError(f"rank {rank} called sys.exit({error.code!r})"), error)
        elif isinstance(error, RuntimeError) and _WAITED.search(str(error)) and not program.is_own(frames[-1]):
            kind = TimeoutError if _TIME.search(str(error)) else RuntimeError
            error = _caused(kind(self._who_waited(rank, frames)), error)
        error.add_note(f"on rank {rank} of {self.size}, a thread of vgpu.ranks")
        return error

    def _who_waited(self, rank: int, frames: list[types.FrameType]) -> str:
        """For whom a rank has waited, in place of the words of gloo, which names an address."""
        others = [self._other(other) for other in range(self.size) if other != rank]
        return "\n".join([f"rank {rank} waited {_place(frames)}, and not every rank came", *others])

    def _other(self, rank: int) -> str:
        frame = sys._current_frames().get(self.threads[rank].ident or 0)
        if rank in self.ended or frame is None:
            return f"rank {rank} had ended"
        return f"rank {rank} was {_place([frame for frame, _ in traceback.walk_stack(frame)][::-1])}"


def _caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _place(frames: list[types.FrameType]) -> str:
    """The collective that a stack is in, and the last line of it that belongs to the program."""
    names = [frame.f_code.co_name for frame in frames if frame.f_code.co_filename.endswith(_COLLECTIVES)]
    collectives = [name for name in names if name != "wrapper"]
    last = next((frame for frame in reversed(frames) if program.is_own(frame)), frames[-1])
    line = f"{last.f_code.co_filename}:{last.f_lineno}, in {last.f_code.co_name}"
    return f"in {collectives[0]} ({line})" if collectives else f"at {line}"
