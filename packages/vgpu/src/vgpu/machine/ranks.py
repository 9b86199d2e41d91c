"""Which rank a thread is where ranks are threads of one process, and what it has for itself as a process would.

Without `vgpu.ranks` no thread is a rank, and each keeper of state answers with the state of the process.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, TypeVar

from vgpu.base.patches import Patches

T = TypeVar("T")


class Rank:
    """One rank. kept: what it has for itself, by the name of what keeps it."""

    def __init__(self, number: int, size: int) -> None:
        self.number, self.size = number, size
        self.kept: dict[str, Any] = {}


class _Thread(threading.local):
    rank: Rank | None = None


_thread = _Thread()


def here() -> Rank | None:
    """The rank that this thread is, or None."""
    return _thread.rank


def enter(rank: Rank) -> None:
    """Make this thread that rank until it ends."""
    _thread.rank = rank


def own(name: str, make: Callable[[], T], of_process: T) -> T:
    """What this rank has for itself under a name, made at the first use; outside of ranks, `of_process`."""
    rank = _thread.rank
    if rank is None:
        return of_process
    if name not in rank.kept:
        rank.kept[name] = make()
    return rank.kept[name]


def install(patches: Patches) -> None:
    """Let threads that a rank starts be of this rank, and let each rank have a copy of the environment variables."""
    patches.set(threading.Thread, "start", _started_by_rank(threading.Thread.start))
    variables = os.environ._data  # type: ignore[attr-defined]
    patches.set(os.environ, "_data", _Variables(variables))


def _started_by_rank(start: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
    def started_by_rank(thread: threading.Thread) -> None:
        rank, run = here(), thread.run
        if rank is not None:

            def run_as_rank() -> None:
                enter(rank)
                run()

            thread.run = run_as_rank  # type: ignore[method-assign]
        start(thread)

    return started_by_rank


class _Variables(MutableMapping):
    """In the place of the dictionary beneath `os.environ`: a rank reads and writes a copy."""

    def __init__(self, of_process: dict) -> None:
        self._of_process = of_process

    def _here(self) -> dict:
        return own("variables", self._of_process.copy, self._of_process)

    def __getitem__(self, name: Any) -> Any:
        return self._here()[name]

    def __setitem__(self, name: Any, value: Any) -> None:
        self._here()[name] = value

    def __delitem__(self, name: Any) -> None:
        del self._here()[name]

    def __iter__(self) -> Iterator:
        return iter(self._here())

    def __len__(self) -> int:
        return len(self._here())


def put_back(ranks: list[Rank]) -> None:
    """Give C's environment, which all ranks have written to, the variables that the process has."""
    variables: Any = os.environ
    for changed in {name for rank in ranks for name in rank.kept.get("variables", ())}:
        name = variables.decodekey(changed)
        if name in os.environ:
            os.environ[name] = os.environ[name]
        else:
            os.unsetenv(name)
