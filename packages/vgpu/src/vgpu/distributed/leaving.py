"""A rank that ends while others wait for it: they learn here which one has left, and how.

NCCL says nothing to those that wait. They hang until the time-out of the group, and then a watchdog ends the process.
Gloo notices at once that a connection has closed, but it knows neither the rank nor the collective. So each rank has a
mailbox in each group, a UDP socket, from which it says farewell before its connections close. No thread listens:
whoever meets a closed connection reads the own mailbox, and finds out whose mailbox has closed without a farewell.
"""

from __future__ import annotations

import contextlib
import multiprocessing.util
import re
import socket
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, NamedTuple

import torch

from vgpu.base import program, variables
from vgpu.base.patches import Patches
from vgpu.machine import ranks as threads

dist: Any = torch.distributed  # PyTorch declares little of what is used of it here

VARIABLE = "VGPUS_LEFT"  # "raise", the default, or "wait" until the time-out, as NCCL does
# Gloo's words for a connection that has ended. One of a group that its rank has destroyed, and still holds, stays open.
_CLOSED = re.compile(r"by peer|[Bb]roken pipe|[Ss]ocket closed|[Tt]imed out")
_GAVE_UP = "it gave up"
_FOLLOWED = "followed a rank that had left"
_DIED = "its process has ended without a word: it was killed, or called os._exit"
_HOST = "127.0.0.1"
_LONGEST = 500  # characters of a farewell
_PATIENCE, _PAUSE = 5.0, 0.02  # seconds: the connections of a process that is killed do not close all at once


class RankLeft(getattr(dist, "DistBackendError", RuntimeError)):  # type: ignore[misc]  # some builds lack it
    """A rank of the group has left while this one waits for it."""


class Mailbox:
    """How a rank of one group says that it leaves, and hears that others have left."""

    def __init__(self, store: Any, rank: int, size: int, ranks: list[int], timeout: timedelta) -> None:
        self.rank, self.size, self.timeout = rank, size, timeout
        self.ranks = list(ranks) or list(range(size))  # the numbers that the group's members have in the program
        self._store = store
        self._others: dict[int, int] = {}  # where they have their mailboxes
        self._left: dict[int, str] = {}  # how those left that have said so
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((_HOST, 0))
        self._socket.setblocking(False)
        store.set(self._key(rank), f"{socket.gethostname()}:{self._socket.getsockname()[1]}")
        self._at_end = multiprocessing.util.Finalize(None, lambda: self.close(_how_this_process_ends()), exitpriority=0)

    @staticmethod
    def _key(rank: int) -> str:
        return f"vgpu/mailbox/{rank}"

    def connect(self) -> None:
        """Learn where the others have their mailboxes, once all have connected: a store may end with its rank."""
        for rank in range(self.size):
            host, _, port = self._store.get(self._key(rank)).decode().rpartition(":")
            if rank != self.rank and host == socket.gethostname():  # the mailboxes of a different machine are not seen
                self._others[rank] = int(port)
        del self._store

    def close(self, how: str) -> None:
        """Say farewell to all others."""
        self.tell(how)
        self._socket.close()
        self._at_end.cancel()

    def tell(self, how: str) -> None:
        """Tell all others why nobody should wait for this rank."""
        for port in self._others.values():
            with contextlib.suppress(OSError):
                self._socket.sendto(f"{self.rank}:{how}"[:_LONGEST].encode(), (_HOST, port))

    def left(self) -> dict[int, str]:
        """The ranks of the program that have left, and how; empty if nobody has."""
        end = time.monotonic() + _PATIENCE
        while True:
            dead = [rank for rank, port in self._others.items() if _is_closed(port)]
            self._read()  # after that question: whoever says farewell does so before the mailbox closes
            found = dict.fromkeys(dead, _DIED) | self._left
            first = {rank: how for rank, how in found.items() if how != _FOLLOWED}
            if first or time.monotonic() > end:
                return {self.ranks[rank]: how for rank, how in sorted((first or found).items())}
            time.sleep(_PAUSE)

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # nothing more is there
            while True:
                rank, _, how = self._socket.recv(4 * _LONGEST).decode(errors="replace").partition(":")
                if rank:  # others ask with an empty letter whether the mailbox is open
                    self._left.setdefault(int(rank), how)  # the first word is the reason, what follows comes of it


def _is_closed(port: int) -> bool:
    """True where no socket has this port any more: the system answers a letter to it with an error."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(0)
        try:
            asking.connect((_HOST, port))
            asking.send(b"")
            asking.recv(1)
        except BlockingIOError:
            return False
        except ConnectionError:
            return True
    return False


def _how_this_process_ends() -> str:
    error = sys.exc_info()[1] or getattr(sys, "last_value", None)
    while isinstance(error, SystemExit) and error.__context__ is not None:
        error = error.__context__
    if isinstance(error, RankLeft):
        return _FOLLOWED
    if isinstance(error, SystemExit) and error.code:
        return f"it ended with status {error.code}"
    if error is None or isinstance(error, SystemExit):
        return "it returned, and its process has ended"
    return f"it raised {type(error).__name__}: {next(iter(str(error).splitlines()), '')}".rstrip(": ")


_mailboxes: dict[str, Mailbox] = {}  # of the groups of this process, by their names


def check() -> str:
    """What those do that wait for a rank that has left.

    Raises:
        ValueError: if the environment says something else than "raise" or "wait".
    """
    return variables.choice(VARIABLE, "raise", "wait")


@contextlib.contextmanager
def of_group(name: str, store: Any, rank: int, size: int, ranks: list[int], timeout: timedelta) -> Iterator[None]:
    """Give the rank its mailbox in a group, which connects its ranks inside of the block."""
    if threads.here() is not None:  # vgpu.ranks knows what has become of each of its ranks
        yield
        return
    check()
    mailbox = Mailbox(store, rank, size, ranks, timeout)
    yield
    mailbox.connect()
    _mailboxes[name] = mailbox


def install(patches: Patches) -> None:
    """Have a rank that ends its group say so, and explain the errors of works that wait."""
    for name in ("shutdown", "abort"):
        patches.set(dist.ProcessGroup, name, _with_farewell(getattr(dist.ProcessGroup, name)))
    wait = dist._Work.wait

    def wait_or_explain(work: Any, *args: Any, **kwargs: Any) -> Any:
        known = _expected.pop(id(work), None)
        with contextlib.nullcontext() if known is None else explained(known.group, known.what):
            return wait(work, *args, **kwargs)

    patches.set(dist._Work, "wait", wait_or_explain)


def _with_farewell(end: Callable) -> Callable:
    def end_of_group(group: Any) -> None:
        mailbox = _mailboxes.pop(group.group_name, None)
        if mailbox is not None:
            mailbox.close("it has destroyed its group")
        end(group)

    return end_of_group


class _Expected(NamedTuple):
    """A work that somebody will wait for, the name of its group, and what it does."""

    work: Any
    group: str
    what: Callable[[], str]


_expected: dict[int, _Expected] = {}  # by the ids of the works


def expect(work: Any, group: str, what: Callable[[], str]) -> None:
    """Remember what a work is, until somebody has waited for it or it has ended."""
    for key, known in list(_expected.items()):
        if known.work.is_completed():
            _expected.pop(key, None)
    _expected[id(work)] = _Expected(work, group, what)


@contextlib.contextmanager
def explained(group: str, what: Callable[[], str]) -> Iterator[None]:
    """Say of an error of gloo's inside the block which rank has left.

    Args:
        group: the name of the group that communicates; one without a mailbox keeps gloo's words.
        what: says which collective waits.

    Raises:
        RankLeft: at once, or after the time-out of the group, if that is what VGPUS_LEFT says.
    """
    begin = time.monotonic()
    try:
        yield
    except RuntimeError as error:
        mailbox = _mailboxes.get(group)
        if mailbox is None or not _CLOSED.search(str(error)):
            raise
        is_late = "imed out" in str(error)
        own = f"{_GAVE_UP} after {time.monotonic() - begin:.0f} s in {what()}{program.here()}"
        if is_late:
            mailbox.tell(own)
        left = mailbox.left()
        if not (left or is_late):
            raise
        if any(how.startswith(_GAVE_UP) for how in left.values()):  # the other rank may have waited for this one
            mailbox.tell(own)
        if check() == "wait":
            time.sleep(max(0.0, begin + mailbox.timeout.total_seconds() - time.monotonic()))
        raise _explanation(mailbox, what(), left) from None


def _explanation(mailbox: Mailbox, what: str, left: dict[int, str]) -> RankLeft:
    lines = "".join(f"\nrank {rank} has left: {how}" for rank, how in left.items())
    lines = lines or "\nno rank has left: the others do something else, or wait for something else"
    return RankLeft(
        f"simulated only: rank {mailbox.ranks[mailbox.rank]} waits in {what}, and will not be answered. On GPUs NCCL "
        f"would hang here until its watchdog ended the process, after {mailbox.timeout.total_seconds():g} s (the "
        f"time-out of the group, by default 10 minutes).{lines}"
    )
