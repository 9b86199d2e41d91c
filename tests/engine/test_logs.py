"""Other forms of a run's log say what `log.jsonl` says."""

import csv
import importlib.util
import os
from dataclasses import replace

import pytest

from frcnn_lite.engine import RunDirectory, TrainConfig, train, write_csv
from frcnn_lite.engine.logs import StepLog
from frcnn_lite.whole_file import WriteError

CONFIG = TrainConfig(
    steps=4, batch_size=2, image_size=64, train_images=8, test_images=2, evaluate_every=2, checkpoint_every=2
)


def quiet(config, out, **arguments):
    return train(config, out, progress=False, **arguments)


def test_csv_holds_every_number_of_the_log(tmp_path):
    history = quiet(CONFIG, tmp_path / "run").history
    write_csv(history, tmp_path / "log.csv")
    with (tmp_path / "log.csv").open(newline="") as file:
        rows = [{name: float(value) for name, value in row.items() if value} for row in csv.DictReader(file)]
    assert rows == history and "AP" not in rows[0] and "AP" in rows[1]
    with pytest.raises(FileExistsError):
        write_csv(history, tmp_path / "log.csv")


def test_a_missing_tensorboard_is_named_before_there_is_a_run(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r'need the package tensorboard: pip install "frcnn_lite\[tensorb'):
        quiet(CONFIG, tmp_path / "run", tensorboard=True)
    assert not (tmp_path / "run").exists()


def test_tensorboard_holds_the_log_and_nothing_else_after_a_crash(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def crash(record):
        if record["step"] == 2:
            raise RuntimeError("power cut")  # this step is on the board, but after the last checkpoint

    with pytest.raises(RuntimeError, match="power cut"):
        quiet(CONFIG, tmp_path / "run", tensorboard=True, on_step=crash)
    history = quiet(replace(CONFIG, evaluate_every=4), tmp_path / "run", tensorboard=True, resume=True).history
    shown = EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    assert set(shown.Tags()["scalars"]) == {name for record in history for name in record} - {"step"}
    for name in ("loss", "lr", "AP"):
        logged = [(record["step"], pytest.approx(record[name], rel=1e-6)) for record in history if name in record]
        assert [(event.step, event.value) for event in shown.Scalars(name)] == logged


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full, which is always full, is Linux's")
def test_a_full_disk_is_named_once(tmp_path):
    (tmp_path / "log.jsonl").symlink_to("/dev/full")
    words = r"log\.jsonl could not be written: the disk is full"
    with StepLog(RunDirectory(tmp_path), []) as log, pytest.raises(WriteError, match=words):
        log.write({"step": 0, "loss": 1.0})
