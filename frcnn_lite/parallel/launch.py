"""Several processes out of one call, for a notebook cell or a test: real ranks, and nothing left behind.

`run_ranks(worker, 2)` does for a function what `torchrun --nproc-per-node 2` does for a program: it starts processes
whose environment says RANK and WORLD_SIZE and where they meet, so the worker's own
`torch.distributed.init_process_group()` needs no argument. What torchrun prints, this returns: each rank's result, or
the one failure that the others only followed.
"""

import math
import multiprocessing
import os
import pickle
import re
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import distributed
from torch.distributed import TCPStore

GRACE = 1.0  # seconds after the first failure in which the others, who wait for that rank, may fail too
PATIENCE = 0.5  # seconds: a wait without end cannot be interrupted on Windows
ANSWER = 20.0  # seconds in which a rank that hangs may say where; on a busy machine it waits for its turn
HOST = "127.0.0.1"  # by number: a host name that does not resolve is the usual trouble on macOS and Windows
# What a rank says when another is gone.
SYMPTOM = re.compile(
    r"closed by peer|reset by peer|[Bb]roken pipe|[Ss]ocket closed|[Tt]imed out|DistStoreError|RankLeft"
)
IN_COLLECTIVE = "distributed_c10d.py"  # in the stack of a rank that waits for others
STARTING = 300.0  # seconds; a rank imports torch and its worker first, on a busy machine for a long time
StartMethod = Literal["spawn", "forkserver"]
STARTED, WHERE = "started", "where"  # what a rank says before it calls its worker, and what the parent may ask it


class Failure(NamedTuple):
    """The end of a rank that did not return.

    Attributes:
        reason: one line, such as "was killed by SIGKILL".
        details: the rank's own traceback (for one that hung, where it stood), or the end of what it wrote to stderr.
        when: seconds since the epoch, infinite for one that never ended.
    """

    reason: str
    details: str
    when: float

    @property
    def blame(self) -> tuple[bool, float]:
        """Sorts the failure that came first before those that follow from it, and who waits after who is waited for."""
        waiting = math.isinf(self.when) and IN_COLLECTIVE in self.details
        return waiting or bool(SYMPTOM.search(self.reason)), self.when


class RankFailed(RuntimeError):
    """A rank that raised, exited, was killed, or did not end in time; all others have been ended.

    Attributes:
        rank: the one to blame.
        failures: rank -> Failure, of that rank and of those that failed with it or because of it.
    """

    def __init__(self, failures: dict[int, Failure]) -> None:
        self.failures = failures
        self.rank = min(failures, key=lambda rank: failures[rank].blame)
        super().__init__(f"rank {self.rank} {self.reason}")
        for rank, failure in failures.items():
            self.add_note(f"\nrank {rank} {failure.reason}\n{failure.details}")

    @property
    def reason(self) -> str:
        """One line, without the rank."""
        return self.failures[self.rank].reason

    @property
    def details(self) -> str:
        """The traceback of the rank to blame, made in its own process."""
        return self.failures[self.rank].details


class _Result(NamedTuple):
    value: Any


class _Rank:
    """The parent's side of one process: the process, the wire to it, and the files it prints into."""

    def __init__(self, job: bytes, environment: dict[str, str], folder: Path, start_method: StartMethod) -> None:
        context: Any = multiprocessing.get_context(start_method)
        self.folder = folder
        self.wire, self.theirs = context.Pipe()
        # Not a daemon: a daemonic process may have no children, and a DataLoader with workers needs some.
        self.process = context.Process(target=live, args=(job, environment, self.theirs, str(folder)))
        self.has_started = False

    def start(self) -> None:
        self.process.start()
        self.theirs.close()  # else the wire would not break when the process dies

    def end(self) -> None:
        self.wire.close()  # a process that is only just being born reads this as: end
        if self.process.pid is not None:
            self.process.kill()
            self.process.join()

    def outcome(self) -> "_Result | Failure | None":
        """The result or the failure of the rank, None while it runs."""
        alive = self.process.is_alive()  # asked before the wire is looked at: what it sent before it ended is there
        try:
            while self.wire.poll():
                kind, *message = self.wire.recv()
                self.has_started = True
                if kind != STARTED:
                    return _Result(pickle.loads(message[0])) if kind is True else Failure(*message)
        except (EOFError, ConnectionError):
            alive = False
        return None if alive else self._death()

    def _death(self) -> Failure:
        self.process.join()
        code = self.process.exitcode or 0
        killed = f"was killed by {signal.Signals(-code).name}" if code < 0 else ""
        return Failure(killed or f"exited with code {code} before its worker returned", self.errors(), time.time())

    def where(self) -> str:
        """The stack of a rank that does not end, from a thread of its own."""
        try:
            self.wire.send(WHERE)
            return self.wire.recv()[1] if self.wire.poll(ANSWER) else "it does not answer: stopped, or in native code\n"
        except (EOFError, ConnectionError):
            return ""

    def errors(self) -> str:
        """The last lines that the process wrote to stderr, from native code too."""
        return "".join(_read(self.folder / "stderr").splitlines(keepends=True)[-20:])

    def printed(self) -> str:
        return _read(self.folder / "stdout")


def run_ranks(
    worker: Callable[..., Any],
    world_size: int,
    *args: Any,
    timeout: float = 60.0,
    start_method: StartMethod = "spawn",
) -> list[Any]:
    """Call `worker(*args)` in `world_size` new processes at once and return their results, rank by rank.

    Every process has what torchrun sets (RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, ...) and one OpenMP
    thread. It joins nothing: that is the worker's first line, such as `with process_group() as device:`. What
    workers print is printed here when all have ended, in the order of the ranks. No process outlives the call, whether
    it returns, raises or is interrupted; if this process dies, they end with it. Virtual GPUs reach them.

    Args:
        worker: a function that can be imported: one of a module, not of a notebook cell. A script needs the guard
            `if __name__ == "__main__":`, since its children import it.
        args: for every rank the same; sent by pickle, as are the results. Tensors travel by value.
        timeout: seconds until ranks that have not ended count as hanging, from the moment when all call the worker.
        start_method: of `multiprocessing`. With "spawn" every rank imports torch itself, which takes seconds. With
            "forkserver" (not on Windows) it is the copy of a process that has imported what
            `multiprocessing.set_forkserver_preload` names. After CUDA or OpenMP were used, "fork" would break them.

    Raises:
        RankFailed: within `GRACE` seconds of the first rank that fails, with that rank's reason and traceback.
        TypeError, ValueError: a worker that children could not import, or other bad arguments.
    """
    if world_size < 1:
        raise ValueError(f"`world_size` must be at least 1, got {world_size}")
    job = _pack(worker, args)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        # The parent holds the store, as torchrun does: port 0 is a free one, and no rank takes it away by dying.
        store = TCPStore(HOST, 0, is_master=True, wait_for_workers=False, use_libuv=sys.platform != "win32")
        ranks = [
            _Rank(job, _environment(rank, world_size, store.port), Path(folder) / str(rank), start_method)
            for rank in range(world_size)
        ]
        try:
            for rank in ranks:
                rank.start()
            return _await(ranks, timeout)
        finally:
            for rank in ranks:
                rank.end()
            for number, rank in enumerate(ranks):
                for line in rank.printed().splitlines():
                    print(f"rank {number}: {line}")


def _pack(worker: Callable[..., Any], args: tuple[Any, ...]) -> bytes:
    module = sys.modules.get(getattr(worker, "__module__", None) or "")
    if getattr(module, "__name__", None) == "__main__" and not hasattr(module, "__file__"):
        raise TypeError(f"`worker` must be a function of a module, got {worker.__name__!r} of a notebook cell")
    try:
        return pickle.dumps((worker, args))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(f"`worker` and `args` must be known to pickle by name or value: {error}") from error


def _environment(rank: int, world_size: int, port: int) -> dict[str, str]:
    """Ours and torchrun's; the last two tell torch that the store is there already, and not rank 0's to open."""
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world_size, "LOCAL_WORLD_SIZE": world_size}
    meeting = {"MASTER_ADDR": HOST, "MASTER_PORT": port}
    elastic = {"TORCHELASTIC_USE_AGENT_STORE": True, "TORCHELASTIC_RESTART_COUNT": 0}
    return {**os.environ, **{name: str(value) for name, value in {**numbers, **meeting, **elastic}.items()}}


def _await(ranks: list[_Rank], timeout: float) -> list[Any]:
    """Each rank's result. After a failure the others have `GRACE` to fail as well. Raises RankFailed."""
    results: dict[int, _Result] = {}
    failures: dict[int, Failure] = {}
    running = dict(enumerate(ranks))
    starting, deadline = True, time.monotonic() + STARTING
    while running and (left := deadline - time.monotonic()) > 0:
        ends = [end for rank in running.values() for end in (rank.wire, rank.process.sentinel)]
        wait(ends, min(left, PATIENCE))
        for number, rank in list(running.items()):
            outcome = rank.outcome()
            if isinstance(outcome, _Result):
                results[number] = outcome
            elif outcome is not None:
                deadline = deadline if failures else min(deadline, time.monotonic() + GRACE)
                failures[number] = outcome
            if outcome is not None:
                del running[number]
        if starting and not failures and all(rank.has_started for rank in ranks):
            starting, deadline = False, time.monotonic() + timeout
    if running and not failures:
        late = f"did not start within {STARTING:g} s" if starting else f"did not end within {timeout:g} s"
        failures = {number: Failure(late, rank.where() + rank.errors(), math.inf) for number, rank in running.items()}
    if failures:
        raise RankFailed(dict(sorted(failures.items())))
    return [results[number].value for number in range(len(ranks))]


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


def live(job: bytes, environment: dict[str, str], wire: Connection, folder: str) -> None:
    """The life of a rank: unpickle (worker, args), call it, and say what became of it; never outlive the parent.

    Sends (True, result) or (False, reason, traceback, time).
    """
    os.environ.clear()  # a fork server has the environment of the time when it was started
    os.environ.update(environment, OMP_NUM_THREADS="1")  # for processes of its own; this one has loaded OpenMP
    torch.set_num_threads(1)  # ranks share the cores, and torchrun's default is 1, too
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent acts on it and ends us
    _print_into(Path(folder))
    lock = threading.Lock()
    threading.Thread(target=_obey, args=(wire, lock), daemon=True).start()
    try:
        worker, args = pickle.loads(job)  # here, where an import that fails is reported like any other error
        with lock:
            wire.send((STARTED,))
        result = pickle.dumps(worker(*args))
    except Exception as error:
        reason = f"raised {type(error).__name__}: {_first_line(error)}"
        with lock:
            wire.send((False, reason, traceback.format_exc(), time.time()))
        # Not through Python's own end: it would wait for peers, and they learn of this from the connections that break.
        sys.stdout.flush()
        os._exit(1)
    sys.stdout.flush()
    if distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()
    with lock:
        wire.send((True, result))


def _obey(wire: Connection, lock: threading.Lock) -> None:
    """Answer the parent's question where the main thread is; end at once when the parent is gone."""
    main = threading.main_thread().ident
    try:
        while wire.recv() == WHERE:
            frames = traceback.extract_stack(sys._current_frames()[main or 0])
            first = next((i for i, frame in enumerate(frames, start=1) if frame.name == live.__name__), 0)
            stack = "".join(traceback.format_list(frames[first:]))
            with lock:
                wire.send((WHERE, stack))
    except (EOFError, OSError):
        os._exit(1)


def _print_into(folder: Path) -> None:
    """Prints go to one file, which the parent shows; what native code says goes to another, for a failure's sake.

    gloo writes "Rank 0 is connected to 1 peer ranks" to stdout, and warnings of several processes come in any order.
    """
    folder.mkdir()
    sys.stdout.flush()
    sys.stderr.flush()
    native = os.open(folder / "stderr", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(native, stream)
    sys.stdout = (folder / "stdout").open("w", encoding="utf-8", buffering=1)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")
