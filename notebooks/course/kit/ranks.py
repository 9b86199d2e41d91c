"""Rank cells: a function that stands in a cell runs in real processes, one for each GPU.

    @ranks(2)
    def total(numbers):
        mine = numbers[distributed.get_rank()].cuda()
        distributed.all_reduce(mine)
        return mine.item()

    total(torch.tensor([1.0, 2.0]))  # [3.0, 3.0]: what each rank returned

What `torchrun` does for a program, this does for a cell: it starts the processes and tells each its rank. They have
joined the group by then, each one's own GPU is its current one, and a watchdog looks after its collectives. What ranks
print is printed when all have ended, in the order of the ranks. Every call has its own processes, and none outlives it.

On Linux the processes are copies of one that has imported torch and no more, so they start within tenths of a second.
On Windows and macOS each rank imports torch itself, which takes some seconds.
"""

import contextlib
import functools
import io
import linecache
import multiprocessing
import os
import pickle
import re
import sys
import tempfile
import types
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import cloudpickle
from torch import distributed

from frcnn_lite.parallel.launch import SYMPTOM, Failure, RankFailed, StartMethod, run_ranks
from frcnn_lite.parallel.process_group import is_launched, process_group
from frcnn_lite.parallel.watchdog import CollectiveHang, Position, Watchdog

LIMIT = 20.0  # seconds in a collective after which a rank counts as hanging
TIMEOUT = 60.0  # seconds for all that a cell does
# macOS has fork servers, too, but its system libraries may not be used in a copy of a process that has loaded them.
START: StartMethod = "forkserver" if sys.platform == "linux" else "spawn"
# What the copied process has imported: torch, and what it imports late and slowly. Nothing that starts a thread.
PRELOADED = ["torch", "torch._dynamo", "torch.nn.parallel", "torch.distributed.fsdp", "torch.distributed.tensor"]
_dog: Watchdog | None = None  # of this process, where it is a rank
FRAME = re.compile(r'^  File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<name>.+)\n(?P<code>(?:    .*\n)*)', re.M)


class RanksFailed(RuntimeError):
    """A rank raised, was killed or did not come to a collective; all ranks have been ended.

    rank: the one that failed first, None when ranks waited for each other; details: its traceback, with the whole text
    of its error; positions: where each rank stood when they waited; printed: what the ranks had printed, after
    `attempt` or `fails`.
    """

    def __init__(
        self, message: str, rank: int | None = None, positions: tuple[Position, ...] = (), details: str = ""
    ) -> None:
        super().__init__(message)
        self.rank, self.positions, self.details = rank, positions, details
        self.printed = ""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in place of a traceback, which would lead through this file and not through the cell."""
        return [f"RanksFailed: {self}"]


@dataclass(frozen=True)
class OnRanks:
    """A function that is called on ranks; see `ranks`. function: the one that stands in the cell."""

    function: Callable[..., Any]
    world_size: int
    limit: float = LIMIT
    device: str | None = None
    joined: bool = True
    timeout: float = TIMEOUT

    def __call__(self, *args: Any) -> list[Any]:
        """What each rank returned for the same arguments, rank by rank. Raises RanksFailed."""
        if is_launched():
            return self.function(*args)  # one rank function calls a second one: it is on a rank already
        job, sources = pack(self.function, args)
        if START == "forkserver":
            multiprocessing.set_forkserver_preload(PRELOADED)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            how = replace(self, function=_unused)
            work = (_live, self.world_size, job, sources, how, folder)
            try:
                return run_ranks(*work, timeout=self.timeout, start_method=START)
            except RankFailed as failed:
                rank = _own_error(failed)
                hang = next(map(_read, sorted(Path(folder).glob("rank *"))), None)
                if hang is not None and rank is None:
                    raise RanksFailed(str(hang), positions=hang.positions) from None
                rank = failed.rank if rank is None else rank
                told = _told(rank, failed.failures[rank])
                raise RanksFailed(told, rank, details=failed.failures[rank].details) from None

    def attempt(self, *args: Any) -> RanksFailed | list[Any]:
        """Call a function that may fail. Print what its ranks print and how it fails; return the error, or the results.

        So a cell whose outcome a reader predicts need not say whether anything fails.
        """
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                results = self(*args)
        except RanksFailed as failed:
            failed.printed = printed.getvalue()
            print(f"{failed.printed}{failed}")
            return failed
        print(printed.getvalue(), end="")
        return results

    def fails(self, *args: Any) -> RanksFailed:
        """Call a function that is meant to fail, print how it does, and return the error. Raises when it does not."""
        failed = self.attempt(*args)
        if isinstance(failed, RanksFailed):
            return failed
        raise AssertionError(f"`{self.function.__name__}` was to fail, and its ranks returned {failed}")


def ranks(
    world_size: int,
    *,
    limit: float = LIMIT,
    device: str | None = None,
    joined: bool = True,
    timeout: float = TIMEOUT,
) -> Callable[[Callable[..., Any]], OnRanks]:
    """A decorator: `@ranks(2)` makes a function of a cell run in two processes, with `cuda:0` and `cuda:1`.

    The function may use what the notebook has defined or imported. That is sent along as it is at the time of the call,
    so a change that a rank makes to it does not come back. What the function returns does; tensors of a GPU have to be
    moved to the CPU first. The errors of a rank name the line of the cell.

    Args:
        world_size: how many processes.
        limit: seconds in a collective after which a rank counts as hanging and the cell ends with a diagnosis.
        device: "cpu" for ranks without GPUs, which then talk over gloo. The default is each rank's own GPU, and NCCL.
        joined: whether the ranks are in a process group already. With False a rank has what torchrun gives it, the
            environment, and the cell does the rest; no watchdog looks after it.
        timeout: seconds for the whole call.
    """
    if world_size < 1:
        raise ValueError(f"`world_size` must be at least 1, got {world_size}")
    return lambda function: OnRanks(function, world_size, limit, device, joined, timeout)


def watchdog() -> Watchdog:
    """The watchdog of this rank, for a function that runs on ranks: `for dog.step in range(steps)`, `dog.watch(ddp)`.

    Raises RuntimeError where there is none: outside of ranks, or with `joined=False`.
    """
    if _dog is None:
        raise RuntimeError(
            "there is a watchdog inside of a function with `@ranks(...)` only, and not with joined=False"
        )
    return _dog


def _unused() -> None:
    """In the place of the cell's function, which travels by value."""


class _CellPickler(cloudpickle.CloudPickler):
    """Sends functions and classes of cells by value, under the name that Jupyter shows for a cell: `In[5]`."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.sources: dict[str, list[str]] = {}

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, types.CodeType) and (label := _cell_of(obj.co_filename)) is not None:
            self.sources[label] = linecache.getlines(obj.co_filename)
            return self.dispatch_table[types.CodeType](obj.replace(co_filename=label))
        return super().reducer_override(obj)


def _cell_of(filename: str) -> str | None:
    """ "In[5]" for the file name that IPython gives to the code of that cell, None for a real file."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    name = shell.compile.format_code_name(filename) if shell is not None else None
    return name[1] if name is not None else None


def pack(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[bytes, dict[str, list[str]]]:
    file = io.BytesIO()
    pickler = _CellPickler(file)
    try:
        pickler.dump((function, args))
    except Exception as error:
        raise TypeError(
            f"`{function.__name__}` uses something of this notebook that cannot be sent to another process: {error}"
        ) from error
    return file.getvalue(), pickler.sources


def _live(job: bytes, sources: dict[str, list[str]], how: OnRanks, folder: str) -> Any:
    """The life of a rank: join, call the cell's function under a watchdog, and stay until every rank is through."""
    global _dog
    for label, lines in sources.items():
        linecache.cache[label] = (sum(map(len, lines)), None, lines, label)  # tracebacks then show the cell's lines
    if not how.joined:
        function, args = cloudpickle.loads(job)
        return function(*args)
    with process_group(how.device):
        with Watchdog(how.limit, on_hang=functools.partial(_write, Path(folder))) as dog:
            _dog = dog
            function, args = cloudpickle.loads(job)  # here: a collective imported by name is watched, too
            _wait_for_others(how, "began")  # so no rank waits in a collective for one that still starts or imports
            result = function(*args)
        # A rank that is through would close its connections, and one that waits for it would raise and not hang.
        _wait_for_others(how, "is through")
    return result


def _wait_for_others(how: OnRanks, moment: str) -> None:
    """Wait until every rank has come to this moment, without a collective."""
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = distributed.PrefixStore("rank cells", distributed.TCPStore(host, port, is_master=False))
    store.set(f"rank {distributed.get_rank()} {moment}", "")
    store.wait([f"rank {rank} {moment}" for rank in range(how.world_size)], timedelta(seconds=how.timeout))


def _write(folder: Path, hang: CollectiveHang) -> None:
    """Leave the diagnosis to the process that started the ranks: this one may be about to be ended."""
    unfinished = folder / f"unfinished {distributed.get_rank()}"
    unfinished.write_bytes(pickle.dumps(hang))
    unfinished.replace(folder / f"rank {distributed.get_rank()}")


def _read(file: Path) -> CollectiveHang:
    return pickle.loads(file.read_bytes())


def _own_error(failed: RankFailed) -> int | None:
    """The rank whose own code raised. While it did, the others may have waited for it long enough to call it a hang."""
    follows = re.compile(f"{SYMPTOM.pattern}|{CollectiveHang.__name__}")
    own = [rank for rank, failure in failed.failures.items() if failure.reason.startswith("raised ")]
    return next((rank for rank in own if not follows.search(failed.failures[rank].reason)), None)


def _told(rank: int, failure: Failure) -> str:
    """The failure of a rank in the words of its own error, with the lines of the cell that led to it."""
    frames = [frame for frame in FRAME.finditer(failure.details) if frame["file"].startswith("In[")]
    lines = [f"  {frame['file']}, line {frame['line']}, in {frame['name']}{_code(frame['code'])}" for frame in frames]
    return "\n".join([f"rank {rank} {failure.reason}", *lines])


def _code(lines: str) -> str:
    """The code of a frame, without the marks below it: Python's versions set them differently."""
    return "".join(f"\n  {line}" for line in lines.splitlines() if line.strip(" ^~"))
