"""`vgpu.ranks`: a function runs on several ranks that are threads of this process, and not processes.

Each rank has its GPU, its process groups over gloo as in processes, its generators of random numbers, its contexts and
its environment variables; README.md lists what threads share. Two ranks begin and end within some milliseconds.
"""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import functools
import os
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch

from vgpu.base.patches import Patches
from vgpu.distributed import backends, rank_failures, splits, worlds
from vgpu.machine import contexts, devices, rank_generators
from vgpu.machine import ranks as threads

__tracebackhide__ = True  # base/tracebacks.py sees what is loaded by then, and this file is loaded when it is used
T = TypeVar("T")
_GRACE = 5.0  # seconds that the other ranks have to end after one has failed
_POLL = 0.05
_running = threading.Lock()


def ranks(
    size: int, *, backend: str | None = "nccl", timeout: float = 60.0
) -> Callable[[Callable[..., T]], Callable[..., list[T]]]:
    """A decorator: the function runs on `size` ranks at once, and returns the list of what each of them returned.

        @vgpu.ranks(2)
        def total(numbers):
            mine = numbers[dist.get_rank()].cuda()
            dist.all_reduce(mine)
            return mine.item()

        total(torch.tensor([1.0, 2.0]))  # [3.0, 3.0]

    A function that is defined elsewhere runs by `vgpu.ranks(2)(function)(arguments)`. All ranks get the same arguments,
    and not copies of them. Rank k has `cuda:k` as its current device, the variables of `torchrun` in `os.environ`, and
    computes with one thread. What the first rank that fails raises is raised, with a note that says which rank it was.

    Args:
        size: how many ranks, at most as many as there are virtual GPUs.
        backend: of the process group that each rank has joined; None where the function makes its own.
        timeout: seconds that a rank waits in a collective for the others.

    Raises:
        TypeError, ValueError: for a bad `size`, `backend` or `timeout`.
    """
    _check(size, backend, timeout)

    def decorate(function: Callable[..., T]) -> Callable[..., list[T]]:
        if not callable(function):
            raise TypeError(f"vgpu.ranks({size}) takes a function, got {function!r}")

        @functools.wraps(function)
        def on_ranks(*args: Any, **kwargs: Any) -> list[T]:
            run = _Run(functools.partial(function, *args, **kwargs), size, backend, timeout)
            with _alone(size):
                if "nccl" in (backend or ""):
                    backends.note_gloo()  # here, since in a thread no line of the program is on the stack
                return run.results()

        return on_ranks

    return decorate


def _check(size: Any, backend: Any, timeout: Any) -> None:
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"vgpu.ranks takes the number of ranks, as in @vgpu.ranks(2), got {size!r}")
    if not 1 <= size <= devices.MAX_GPUS:
        raise ValueError(f"the number of ranks must be from 1 to {devices.MAX_GPUS}, got {size}")
    if not (backend is None or isinstance(backend, str)):
        raise TypeError(f"backend must be a name such as 'nccl' or 'gloo', or None, got {backend!r}")
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise TypeError(f"timeout must be a number of seconds, got {timeout!r}")
    if not timeout > 0:
        raise ValueError(f"timeout must be more than 0 seconds, got {timeout}")


@contextlib.contextmanager
def _alone(size: int) -> Iterator[None]:
    """The block runs if there are GPUs for so many ranks, and no others."""
    if not torch.distributed.is_available():
        raise RuntimeError("vgpu.ranks needs torch.distributed, which this build of PyTorch lacks")
    found = devices.count()
    if found < size:
        there = "there are no virtual GPUs" if not devices.total() else f"this process sees {found}"
        raise RuntimeError(f"vgpu.ranks({size}) needs {size} virtual GPUs, and {there}: call vgpu.enable({size}) first")
    if threads.here() is not None:
        raise RuntimeError("vgpu.ranks was called on a rank; a rank has no ranks of its own")
    if not _running.acquire(blocking=False):
        raise RuntimeError("vgpu.ranks runs in another thread of this process; its ranks must end first")
    try:
        yield
    finally:
        _running.release()


class _Run:
    """One call of a function on all ranks."""

    def __init__(self, work: Callable[[], Any], size: int, backend: str | None, timeout: float) -> None:
        self.work, self.size, self.backend, self.timeout = work, size, backend, timeout
        self.store = torch.distributed.HashStore()
        self.returned: dict[int, Any] = {}
        self.failures = rank_failures.Failures(size)
        self.ranks = [threads.Rank(number, size) for number in range(size)]
        self.port = _free_port() if backend is None else 0
        self.joined = threading.Barrier(size)  # a rank that ends at once would break off connections of the others

    def results(self) -> list[Any]:
        """What each rank returned. Raises what the first one raised that failed."""
        before, patches = torch.get_num_threads(), Patches()
        try:
            threads.install(patches)
            rank_generators.install(patches)
            worlds.install(patches)
            splits.install(patches)
            self._run()
        finally:
            patches.restore()
            torch.set_num_threads(before)
            threads.put_back(self.ranks)
            contexts.forget_ranks()
        self.failures.raise_first()
        return [self.returned[number] for number in range(self.size)]

    def _run(self) -> None:
        for rank in self.ranks:
            thread = threading.Thread(target=self._live, args=(rank,), name=f"rank {rank.number}", daemon=True)
            self.failures.threads.append(thread)
        for thread in self.failures.threads:
            thread.start()
        for thread in self.failures.threads:
            while thread.is_alive() and not self.failures.older_than(_GRACE):
                thread.join(_POLL)
        for thread in self.failures.threads:
            if thread.is_alive():
                _end(thread)

    def _live(self, rank: threads.Rank) -> None:
        """The life of a rank."""
        threads.enter(rank)
        try:
            try:
                self._begin(rank.number)
                self.returned[rank.number] = self.work()
            finally:
                self.failures.ended.add(rank.number)
        except BaseException as error:  # also what ends programs: one rank that exits must not leave the others waiting
            self.failures.add(rank.number, error)
            self.joined.abort()
        with contextlib.suppress(Exception):
            worlds.leave()

    def _begin(self, number: int) -> None:
        """Give this thread what a rank has at the start of a program under torchrun."""
        os.environ.update(_variables(number, self.size, self.port))
        torch.set_num_threads(1)
        torch.cuda.set_device(number)
        if self.backend is not None:
            torch.distributed.init_process_group(
                self.backend,
                store=self.store,
                rank=number,
                world_size=self.size,
                timeout=datetime.timedelta(seconds=self.timeout),
                device_id=torch.device("cuda", number) if "nccl" in self.backend else None,
            )
            self.joined.wait(self.timeout)


def _variables(number: int, size: int, port: int) -> dict[str, str]:
    """What torchrun tells a rank."""
    told = {"RANK": number, "LOCAL_RANK": number, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size, "MASTER_PORT": port}
    return {"MASTER_ADDR": "127.0.0.1", **{name: str(value) for name, value in told.items()}}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _end(thread: threading.Thread) -> None:
    """Let a thread that goes on after another rank has failed end at its next line of Python."""
    ident, error = ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, error)
