"""The life of one process of `run_ranks`: do the job, say what became of it, and never outlive the parent."""

import os
import pickle
import signal
import sys
import threading
import time
import traceback
from multiprocessing.connection import Connection
from pathlib import Path

import torch
from torch import distributed

WHERE = "where"  # the parent asks a rank that does not end where it stands


def live(job: bytes, environment: dict[str, str], wire: Connection, folder: str) -> None:
    """Unpickle (worker, args), call it, and send (True, result) or (False, reason, traceback, time)."""
    os.environ.update(environment, OMP_NUM_THREADS="1")  # for processes of its own; this one has loaded OpenMP
    torch.set_num_threads(1)  # ranks share the cores, and torchrun's default is 1, too
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent acts on it and ends us
    _print_into(Path(folder))
    lock = threading.Lock()
    threading.Thread(target=_obey, args=(wire, lock), daemon=True).start()
    try:
        worker, args = pickle.loads(job)  # here, where an import that fails is reported like any other error
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
    """Answer the parent's question where the main thread stands; end at once when the parent is gone."""
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
