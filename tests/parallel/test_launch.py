"""`run_ranks`: real processes, their results, and what is said of one that fails, hangs or is left alone."""

import _thread
import importlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import pytest
import torch
from torch import distributed

from frcnn_lite.parallel.launch import RankFailed, run_ranks

# This file as spawned processes import it: by its name, from the folder that pytest has put on the path.
workers = importlib.import_module(Path(__file__).stem)
# Ranks that come to a bad end are copies of one process that has imported torch, where the system has such copies: what
# becomes of a rank is seen in the same way, and each spawned one takes seconds of a processor to import torch.
COPIES = "forkserver" if sys.platform == "linux" else "spawn"
multiprocessing.set_forkserver_preload(["torch"])


@pytest.fixture
def vgpu():
    return pytest.importorskip("vgpu", reason="it needs vgpu, which gives a machine several GPUs")


def meet(device="cpu", fail_on=None, how=None):
    """Add up the ranks; then one of them fails, if any, while the others wait for it."""
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    place = torch.device(device, rank if device == "cuda" else None)
    number = torch.tensor([rank + 1.0], device=place)
    distributed.all_reduce(number)
    print(f"one of {distributed.get_world_size()}\nhere")
    if rank == fail_on:
        fail(how)
    if fail_on is not None:
        distributed.all_reduce(number)
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "OMP_NUM_THREADS")
    return {
        "pid": os.getpid(),
        "sum": number,
        "threads": torch.get_num_threads(),
        "environment": [os.environ[name] for name in names],
    }


def fail(how):
    if how == "raise":
        raise LookupError("no such picture\nsecond line")
    if how == "exit":
        os._exit(3)  # after sys.exit the group would be torn down with its peer waiting, and at times that aborts
    if how == "kill":
        print("about to be killed")
        os.kill(os.getpid(), signal.SIGKILL)
    wait_for_ever()


def wait_for_ever():
    while True:
        time.sleep(0.05)


def announce_and_hang(folder):
    """Leave a file named after the process, then wait to be ended."""
    (folder / str(os.getpid())).touch()
    wait_for_ever()


def return_a_lambda():
    return lambda: None


def is_running(pid):
    """Whether a process is there; one that has ended and was not waited for is not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


def wait_until(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def test_every_rank_returns_in_order_and_none_is_left(capsys):
    first, second = run_ranks(workers.meet, 2)
    assert first["environment"] == ["0", "0", "2", "1"] and second["environment"] == ["1", "1", "2", "1"]
    for result in (first, second):
        assert result["threads"] == 1
        torch.testing.assert_close(result["sum"], torch.tensor([3.0]))
        assert result["pid"] != os.getpid() and not is_running(result["pid"])
    # Prints in the order of the ranks, and nothing of what gloo has to say.
    assert capsys.readouterr() == ("rank 0: one of 2\nrank 0: here\nrank 1: one of 2\nrank 1: here\n", "")
    assert multiprocessing.active_children() == []


def test_virtual_gpus_reach_the_ranks(vgpu):
    with vgpu.virtual_gpus(2, force=True):
        results = run_ranks(workers.meet, 2, "cuda")
        assert [str(result["sum"].device) for result in results] == ["cuda:0", "cuda:1"]


@pytest.mark.parametrize(
    ("rank", "how", "reason", "details"),
    [
        (1, "raise", "rank 1 raised LookupError: no such picture", 'in fail\n    raise LookupError("no such picture'),
        (1, "exit", "rank 1 exited with code 3 before its worker returned", ""),
        (0, "kill", "rank 0 was killed by SIGKILL", ""),
    ],
)
def test_the_rank_that_failed_is_named_and_not_the_one_that_waited(rank, how, reason, details, capsys):
    with pytest.raises(RankFailed) as caught:
        run_ranks(workers.meet, 2, "cpu", rank, how, start_method=COPIES)
    # Seconds; without its help the other rank would wait for half an hour, which is the time limit of gloo.
    assert time.time() - caught.value.failures[rank].when < 120
    assert str(caught.value) == reason and caught.value.rank == rank
    assert details in caught.value.details and any(details in note for note in caught.value.__notes__)
    if 1 - rank in caught.value.failures:
        assert "peer" in caught.value.failures[1 - rank].reason
    assert multiprocessing.active_children() == []
    assert f"rank {rank}: one of 2" in capsys.readouterr().out  # what a rank printed before it died is not lost


def test_a_rank_that_hangs_says_where_and_who_waits_for_it_is_not_blamed():
    with pytest.raises(RankFailed, match=r"rank 1 did not end within 10 s") as caught:
        run_ranks(workers.meet, 2, "cpu", 1, "hang", timeout=10, start_method=COPIES)
    assert "in wait_for_ever" in caught.value.details
    assert "in all_reduce" in caught.value.failures[0].details
    assert multiprocessing.active_children() == []


def test_an_interrupted_cell_leaves_nothing_behind(tmp_path):
    def interrupt():
        wait_until(lambda: len(os.listdir(tmp_path)) == 2, 300)
        _thread.interrupt_main()

    # A shell starts what it runs in the background deaf to Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            run_ranks(workers.announce_and_hang, 2, tmp_path, start_method=COPIES)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(os.listdir(tmp_path)) == 2
    assert not any(is_running(int(pid)) for pid in os.listdir(tmp_path))


@pytest.mark.skipif(os.name == "nt", reason="ends a process by a POSIX signal")
def test_ranks_end_with_a_parent_that_is_killed(tmp_path):
    program = tmp_path / "program.py"
    folder = tmp_path / "pids"
    folder.mkdir()
    program.write_text(
        f"import pathlib, sys, {workers.__name__} as workers\n"
        "if __name__ == '__main__':\n"
        "    workers.run_ranks(workers.announce_and_hang, 2, pathlib.Path(sys.argv[1]))\n"
    )
    path = os.pathsep.join([str(Path(workers.__file__).parent), *sys.path])
    parent = subprocess.Popen([sys.executable, program, folder], env={**os.environ, "PYTHONPATH": path})
    assert wait_until(lambda: len(os.listdir(folder)) == 2, 300)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert wait_until(lambda: not any(is_running(int(pid)) for pid in os.listdir(folder)), 10)


def test_a_result_that_cannot_travel_is_an_error_of_its_rank():
    with pytest.raises(RankFailed, match=r"rank 0 raised \w+: .*lambda"):
        run_ranks(workers.return_a_lambda, 1, start_method=COPIES)


def test_bad_arguments(monkeypatch):
    with pytest.raises(ValueError, match="`world_size` must be at least 1, got 0"):
        run_ranks(workers.meet, 0)
    with pytest.raises(TypeError, match="`worker` and `args` must be known to pickle"):
        run_ranks(lambda: None, 2)

    def cell():
        pass

    monkeypatch.setitem(sys.modules, "__main__", types.ModuleType("__main__"))
    cell.__module__ = "__main__"
    with pytest.raises(TypeError, match="`worker` must be a function of a module, got 'cell' of a notebook cell"):
        run_ranks(cell, 2)
