import importlib
import json
import os
import signal
import threading
from dataclasses import replace

import pytest
import torch

from frcnn_lite.data import DigitScenes, collate
from frcnn_lite.detection import FasterRCNNConfig
from frcnn_lite.engine import CheckpointError, RunStopped, TrainConfig, load_run, train
from frcnn_lite.engine.checkpoint import load_checkpoint, save_checkpoint
from frcnn_lite.engine.interrupt import deferred_interrupt
from frcnn_lite.engine.trainer import Trainer
from frcnn_lite.whole_file import WriteError

CONFIG = TrainConfig(steps=20, batch_size=3, image_size=64, train_images=25, test_images=0, warmup_steps=4)


def quiet(config, out, **arguments):
    return train(config, out, progress=False, **arguments)


def stop_after(step):
    """What Ctrl-C during step number `step` does, from the callback."""

    def on_step(record):
        if record["step"] == step:
            raise KeyboardInterrupt

    return on_step


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of 20 steps that was never interrupted."""
    return quiet(CONFIG, tmp_path_factory.mktemp("runs") / "whole")


def test_a_run_leaves_config_log_and_checkpoint(whole):
    assert sorted(os.listdir(whole.run_dir)) == ["checkpoint.pt", "config.json", "log.jsonl"]
    log = [json.loads(line) for line in (whole.run_dir / "log.jsonl").read_text().splitlines()]
    assert log == whole.history and [record["step"] for record in log] == list(range(20))
    assert log[0].keys() == {"step", "loss", "rpn_objectness", "rpn_box", "head_class", "head_box", "lr"}
    parts = ("rpn_objectness", "rpn_box", "head_class", "head_box")
    for record in log:
        assert record["loss"] == pytest.approx(sum(record[name] for name in parts), rel=1e-6)
    assert not whole.interrupted and whole.evaluation is None
    run = load_run(whole.run_dir)
    assert run.step == 20 and run.config == CONFIG and run.history == log and not run.model.training


def test_training_learns(whole):
    # The head's losses rise at first: the better the proposals, the harder what it is asked.
    objectness = [record["rpn_objectness"] for record in whole.history]
    assert sum(objectness[-3:]) < 0.8 * sum(objectness[:3])


def test_equal_configs_give_equal_curves_and_another_seed_another(whole, tmp_path):
    torch.manual_seed(123)  # the global generator has no say
    short = replace(CONFIG, schedule="constant", warmup_steps=0, steps=3)
    first, second = quiet(short, tmp_path / "a").losses, quiet(short, tmp_path / "b").losses
    assert first == pytest.approx(second, rel=1e-6)
    assert quiet(replace(short, seed=1), tmp_path / "c").losses != pytest.approx(first, rel=1e-3)


def test_resume_continues_the_curve(whole, tmp_path, capsys):
    halted = quiet(CONFIG, tmp_path / "run", on_step=stop_after(9))
    assert halted.interrupted and len(halted.history) == 10
    assert f"stopped after 10 of 20 steps; saved {tmp_path / 'run' / 'checkpoint.pt'}" in capsys.readouterr().err
    resumed = quiet(CONFIG, tmp_path / "run", resume=True)
    assert resumed.losses == pytest.approx(whole.losses, rel=1e-6)
    a, b = load_run(whole.run_dir).model.state_dict(), load_run(resumed.run_dir).model.state_dict()
    for name in a:
        torch.testing.assert_close(a[name], b[name], rtol=1e-6, atol=1e-7)


def test_auto_begins_a_run_and_goes_on_with_it(whole, tmp_path, capsys):
    """What a notebook's cell does when it is run again: after a stop it continues, after the end it changes nothing."""
    halted = quiet(CONFIG, tmp_path / "run", resume="auto", on_step=stop_after(9))
    with pytest.raises(RunStopped, match=r"stopped after 10 steps and is saved in .*run\. Run the cell .* again"):
        halted.require_all_steps()
    assert "going on" not in capsys.readouterr().err
    again = quiet(CONFIG, tmp_path / "run", resume="auto")
    assert "going on after 10 of 20 steps" in capsys.readouterr().err
    assert again.losses == pytest.approx(whole.losses, rel=1e-6)
    again.require_all_steps()
    assert quiet(CONFIG, tmp_path / "run", resume="auto", on_step=stop_after(0)).losses == again.losses


def test_after_a_crash_resume_goes_back_to_the_last_checkpoint(whole, tmp_path, capsys):
    """A crash saves nothing: steps logged after the checkpoint are taken again, and not logged twice."""

    def crash(record):
        if record["step"] == 7:
            raise RuntimeError("power cut")

    config = replace(CONFIG, checkpoint_every=5)
    with pytest.raises(RuntimeError, match="power cut"):
        quiet(config, tmp_path / "run", on_step=crash)
    with (tmp_path / "run" / "log.jsonl").open("a") as log:
        log.write('{"step": 8, "lo')  # the line that was being written
    assert load_run(tmp_path / "run").step == 5
    resumed = quiet(config, tmp_path / "run", resume=True)
    assert "is of step 5: the 3 steps logged after it are lost, and taken again" in capsys.readouterr().err
    assert [record["step"] for record in resumed.history] == list(range(20))
    assert resumed.losses == pytest.approx(whole.losses, rel=1e-6)


def test_resuming_a_finished_run_takes_no_step(whole):
    before = (whole.run_dir / "log.jsonl").read_bytes()
    again = quiet(CONFIG, whole.run_dir, resume=True, on_step=stop_after(0))
    assert not again.interrupted and again.losses == whole.losses
    assert (whole.run_dir / "log.jsonl").read_bytes() == before


def test_a_real_signal_ends_the_step_first(tmp_path):
    def on_step(record):
        if record["step"] == 2:
            signal.raise_signal(signal.SIGINT)

    result = quiet(CONFIG, tmp_path / "run", on_step=on_step)
    assert result.interrupted and load_run(tmp_path / "run").step == 3
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_while_the_ranks_agree_is_not_lost(tmp_path, monkeypatch):
    def agree(flag):
        if len(asked) == 1:
            signal.raise_signal(signal.SIGINT)
        asked.append(flag)
        return flag

    asked = []
    module = importlib.import_module("frcnn_lite.engine.train")  # the package has a function of that name
    monkeypatch.setattr(module, "any_rank", agree)
    result = quiet(CONFIG, tmp_path / "run")
    assert result.interrupted and asked[:3] == [False, False, True] and load_run(result.run_dir).step == 3


def test_sigterm_saves_as_ctrl_c_does_and_says_so(whole, tmp_path, capsys):
    def on_step(record):
        if record["step"] == 2:
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)  # to the process and to its group

    before = signal.getsignal(signal.SIGTERM)
    result = quiet(CONFIG, tmp_path / "run", on_step=on_step)
    assert result.interrupted and result.terminated and signal.getsignal(signal.SIGTERM) is before
    assert (
        f"SIGTERM: stopped after 3 of 20 steps; saved {tmp_path / 'run' / 'checkpoint.pt'}" in capsys.readouterr().err
    )
    assert quiet(CONFIG, tmp_path / "run", resume=True).losses == pytest.approx(whole.losses, rel=1e-6)


def test_a_signal_during_the_last_save_is_not_lost(tmp_path, monkeypatch):
    def save(path, state):
        save_checkpoint(path, state)
        if state["step"] == 2:
            signal.raise_signal(signal.SIGTERM)

    module = importlib.import_module("frcnn_lite.engine.begin")
    monkeypatch.setattr(module, "save_checkpoint", save)
    result = quiet(replace(CONFIG, steps=2, test_images=4), tmp_path / "run")
    assert result.terminated and result.evaluation is None and len(result.history) == 2


def full_disk_for(file):
    """What is written to `file` goes to a device that the system takes for a full disk."""
    file.symlink_to("/dev/full")


on_linux = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full, which is always full, is Linux's")


@on_linux
def test_a_full_disk_keeps_the_last_checkpoint_and_says_which(whole, tmp_path, capsys):
    def on_step(record):
        if record["step"] == 7:
            full_disk_for(tmp_path / "run" / "checkpoint.partial.pt")

    config = replace(CONFIG, checkpoint_every=4)
    words = (
        r"checkpoint\.pt could not be written: the disk is full\. .*checkpoint\.pt of step 4 is whole.* resume the run"
    )
    with pytest.raises(WriteError, match=words):
        quiet(config, tmp_path / "run", on_step=on_step)
    assert sorted(os.listdir(tmp_path / "run")) == ["checkpoint.pt", "config.json", "log.jsonl"]
    assert load_run(tmp_path / "run").step == 4
    capsys.readouterr()
    resumed = quiet(config, tmp_path / "run", resume=True)
    assert "is of step 4: the 4 steps logged after it are lost, and taken again" in capsys.readouterr().err
    assert resumed.losses == pytest.approx(whole.losses, rel=1e-6)


@on_linux
def test_a_run_that_cannot_begin_leaves_nothing_in_the_way(tmp_path):
    (tmp_path / "run").mkdir()
    full_disk_for(tmp_path / "run" / "checkpoint.partial.pt")
    with pytest.raises(WriteError, match="the disk is full"):
        quiet(replace(CONFIG, steps=1), tmp_path / "run")
    assert os.listdir(tmp_path / "run") == []
    assert len(quiet(replace(CONFIG, steps=1), tmp_path / "run").history) == 1


def test_the_second_signal_is_not_held_back():
    with deferred_interrupt() as interruption:
        signal.raise_signal(signal.SIGINT)
        assert interruption.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_training_works_in_a_thread_that_gets_no_signals(tmp_path):
    results = []
    config = replace(CONFIG, steps=1)
    thread = threading.Thread(target=lambda: results.append(quiet(config, tmp_path / "run")))
    thread.start()
    thread.join()
    assert len(results[0].history) == 1


def test_an_existing_run_is_never_overwritten(whole):
    before = {name: (whole.run_dir / name).read_bytes() for name in os.listdir(whole.run_dir)}
    with pytest.raises(FileExistsError, match="holds a run already"):
        quiet(CONFIG, whole.run_dir)
    with pytest.raises(ValueError, match=r"in lr, seed; a run can only go on as it was begun.*delete"):
        quiet(replace(CONFIG, lr=0.5, seed=1), whole.run_dir, resume=True)
    assert before == {name: (whole.run_dir / name).read_bytes() for name in os.listdir(whole.run_dir)}


def test_nothing_to_resume(tmp_path):
    with pytest.raises(FileNotFoundError, match="no run at"):
        quiet(CONFIG, tmp_path / "nowhere", resume=True)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileExistsError, match="is a file"):
        quiet(CONFIG, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_damaged_checkpoint_is_named_and_the_log_kept(tmp_path):
    run = quiet(replace(CONFIG, steps=2), tmp_path / "run").run_dir
    log = (run / "log.jsonl").read_bytes()
    (run / "checkpoint.pt").write_bytes(b"damaged")
    for attempt in (lambda: quiet(replace(CONFIG, steps=2), run, resume=True), lambda: load_run(run)):
        with pytest.raises(CheckpointError, match=r"checkpoint\.pt cannot be read"):
            attempt()
    assert (run / "checkpoint.pt").read_bytes() == b"damaged" and (run / "log.jsonl").read_bytes() == log


def test_a_damaged_config_is_named(tmp_path):
    run = quiet(replace(CONFIG, steps=1), tmp_path / "run").run_dir
    (run / "config.json").write_text('{"steps": ')
    with pytest.raises(ValueError, match=r"config\.json cannot be read"):
        load_run(run)


def test_a_damaged_log_is_named(tmp_path):
    run = quiet(replace(CONFIG, steps=1), tmp_path / "run").run_dir
    (run / "log.jsonl").write_text('7\n{"step": 0}\n')
    with pytest.raises(ValueError, match=r"log\.jsonl line 1 is not a record of a step: '7'"):
        load_run(run)


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    config = replace(CONFIG, steps=1)
    run = quiet(config, tmp_path / "run").run_dir
    log, state = (run / "log.jsonl").read_bytes(), load_checkpoint(run / "checkpoint.pt")
    wrong = state["trainer"]["model"].copy()
    name = next(name for name, tensor in wrong.items() if tensor.is_floating_point())
    wrong[name] = torch.full_like(wrong[name], float("nan"))
    for change, why in (
        ({"trainer": {"model": [1, 2]}}, "not a checkpoint of this run"),
        ({"step": -5}, "not a checkpoint of this run: it is of step -5 of 1"),
        ({"step": 10**9}, "not a checkpoint of this run: it is of step 1000000000 of 1"),
        ({"trainer": {**state["trainer"], "model": wrong}}, f"holds weights that are not finite: {name}"),
    ):
        save_checkpoint(run / "checkpoint.pt", {**state, **change})
        with pytest.raises(CheckpointError, match=why):
            quiet(config, run, resume=True)
    assert (run / "log.jsonl").read_bytes() == log


def test_a_log_with_fewer_lines_than_the_checkpoint_has_steps_is_said(tmp_path, capsys):
    run = quiet(replace(CONFIG, steps=3), tmp_path / "run").run_dir
    lines = (run / "log.jsonl").read_text().splitlines()
    (run / "log.jsonl").write_text(lines[0] + "\n")
    quiet(replace(CONFIG, steps=3), run, resume=True)
    assert "holds 1 of the 3 steps before the checkpoint" in capsys.readouterr().err


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    small = replace(CONFIG, steps=1, model=FasterRCNNConfig(head_width=32))
    run, other = quiet(small, tmp_path / "a").run_dir, quiet(replace(CONFIG, steps=1), tmp_path / "b").run_dir
    (run / "checkpoint.pt").write_bytes((other / "checkpoint.pt").read_bytes())
    with pytest.raises(CheckpointError, match="not a checkpoint of this run"):
        quiet(small, run, resume=True)


def test_a_loss_that_is_not_finite_stops_before_it_spoils_the_weights(tmp_path):
    with pytest.raises(FloatingPointError, match="try a lower lr"):
        quiet(replace(CONFIG, lr=1e18, warmup_steps=0, max_grad_norm=1e18), tmp_path / "run")
    run = load_run(tmp_path / "run")
    assert all(torch.isfinite(tensor).all() for tensor in run.model.state_dict().values())


@pytest.mark.parametrize("name", ["images", "boxes"])
def test_a_loss_that_is_not_finite_because_of_the_data_says_so(name):
    """No learning rate helps against a coordinate that is not a number."""
    trainer, batch = Trainer(replace(CONFIG, steps=1)), collate([DigitScenes("train", 1)[0]] * 3)
    getattr(batch, name).view(-1)[0] = float("nan")
    with pytest.raises(FloatingPointError, match=rf"the loss is nan at .*; the {name} of the batch are not finite"):
        trainer.take_step(batch)


def test_steps_before_a_loss_that_is_not_finite_are_saved(whole, tmp_path, monkeypatch):
    """A poisoned batch at step 7: what was learnt up to there is kept, and the run goes on as if nothing had been."""
    honest, taken = Trainer.take_step, []

    def poisoned(self, batch):
        taken.append(batch)
        if len(taken) == 8:
            batch = batch._replace(images=batch.images * float("nan"))
        return honest(self, batch)

    monkeypatch.setattr(Trainer, "take_step", poisoned)
    with pytest.raises(FloatingPointError):
        quiet(CONFIG, tmp_path / "run")
    assert load_run(tmp_path / "run").step == 7
    resumed = quiet(CONFIG, tmp_path / "run", resume=True)
    assert resumed.losses == pytest.approx(whole.losses, rel=1e-6)


def test_as_many_classes_as_the_data(tmp_path):
    with pytest.raises(ValueError, match=r"`model.num_classes` must be 10 for data 'digits', got 3"):
        quiet(replace(CONFIG, model=FasterRCNNConfig(num_classes=3)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_more_gpus_than_there_are(tmp_path):
    present = torch.cuda.device_count()
    with pytest.raises(ValueError, match=f"`gpus` must be between 0 and {present}"):
        quiet(replace(CONFIG, gpus=present + 1, batch_size=present + 1), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_workers_do_not_change_the_curve(whole, tmp_path):
    config = replace(CONFIG, steps=3, schedule="constant")
    alone = quiet(config, tmp_path / "a").losses
    assert quiet(replace(config, workers=1), tmp_path / "b").losses == pytest.approx(alone, rel=1e-6)


def test_evaluation_at_the_end(tmp_path):
    result = quiet(replace(CONFIG, steps=1, test_images=4), tmp_path / "run")
    assert result.evaluation.images == 4 and 0 <= result.evaluation.AP50 <= 1
