"""Two trainings never write into one run directory."""

import signal
import subprocess
import sys
import time

import pytest

from frcnn_lite.engine import RunDirectory, RunInUseError, TrainConfig
from frcnn_lite.engine.run_lock import LOCK, run_lock
from frcnn_lite.engine.train import train

HOLDER = """
import sys, time
from pathlib import Path
from frcnn_lite.engine.run_lock import run_lock

with run_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """A process that holds the lock of `tmp_path/run`."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path / "run"], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        yield other
        other.kill()


def test_a_second_training_is_refused_and_changes_nothing(tmp_path, holder):
    run = tmp_path / "run"
    config = TrainConfig(steps=1, train_images=2, test_images=0)
    for resume in (False, "auto"):
        with pytest.raises(RunInUseError, match=rf"run is being trained by process {holder.pid}; wait until it ends"):
            train(config, run, resume=resume, progress=False)
    assert [file.name for file in run.iterdir()] == [LOCK]
    (run / "config.json").write_text(config.to_json())
    with pytest.raises(RunInUseError):
        train(config, run, resume=True, progress=False)


@pytest.mark.skipif(sys.platform == "win32", reason="it has no SIGKILL")
def test_a_killed_run_can_be_resumed_at_once(tmp_path, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with run_lock(tmp_path / "run"):
        assert (tmp_path / "run" / LOCK).exists()
    assert not (tmp_path / "run" / LOCK).exists()


def test_one_of_several_that_begin_in_one_moment(tmp_path):
    code = HOLDER.replace("time.sleep(60)", "time.sleep(0.05)")
    start = [
        sys.executable,
        "-c",
        f"import time\nwhile time.time() < {time.time() + 4}: pass\n{code}",
        tmp_path / "run",
    ]
    three = [subprocess.Popen(start, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for process in three:
        out, error = process.communicate()
        assert (process.returncode, out) == (0, "held\n") or "RunInUseError" in error


def test_a_file_in_the_place_of_the_directory(tmp_path):
    (tmp_path / "run").write_text("mine")
    for path in (tmp_path / "run", tmp_path / "run" / "below"):
        with pytest.raises(FileExistsError, match="a run needs a directory"), run_lock(path):
            pass
    assert (tmp_path / "run").read_text() == "mine"


def test_a_finished_run_leaves_no_lock(tmp_path):
    run = train(TrainConfig(steps=1, train_images=2, test_images=0), tmp_path / "run", progress=False).run_dir
    assert not (run / LOCK).exists() and RunDirectory.open(run)
