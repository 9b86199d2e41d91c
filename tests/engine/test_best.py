"""Evaluation during training: it keeps the best weights, says how good they are, and leaves the curve alone."""

import os
from dataclasses import replace

import pytest

from frcnn_lite import engine
from frcnn_lite.engine import CheckpointError, RunDirectory, TrainConfig, load_run, load_weights, train
from frcnn_lite.engine.checkpoint import load_checkpoint
from frcnn_lite.recipes.determinism import same_bits

CONFIG = TrainConfig(
    steps=9, batch_size=2, image_size=64, train_images=12, test_images=6, warmup_steps=0, evaluate_every=2
)
METRICS = ("AP", "AP50", "AP75")


class Verdicts:
    """In place of `evaluate`: real evaluation, but AP as told, so that the best is known beforehand."""

    def __init__(self, *verdicts):
        self.verdicts, self.honest = list(verdicts), engine.evaluate

    def __call__(self, model, pictures, *, batch_size):
        return replace(self.honest(model, pictures, batch_size=batch_size), AP=self.verdicts.pop(0))


def quiet(config, out, **arguments):
    return train(config, out, progress=False, **arguments)


def crash_at(step):
    def on_step(record):
        if record["step"] == step:
            raise RuntimeError("power cut")

    return on_step


@pytest.fixture(scope="module")
def unjudged(tmp_path_factory):
    return quiet(replace(CONFIG, evaluate_every=0), tmp_path_factory.mktemp("runs") / "unjudged")


def test_metrics_are_logged_and_the_curve_is_the_same_to_the_bit(unjudged, tmp_path):
    judged = quiet(CONFIG, tmp_path / "run")
    assert [record["step"] for record in judged.history if "AP" in record] == [1, 3, 5, 7]
    bare = [{name: value for name, value in record.items() if name not in METRICS} for record in judged.history]
    assert bare == unjudged.history and judged.evaluation == unjudged.evaluation
    run, plain = load_run(judged.run_dir), load_run(unjudged.run_dir)
    assert run.history == judged.history and same_bits(run.model.state_dict(), plain.model.state_dict())
    assert not (unjudged.run_dir / "best.pt").exists()


def test_the_best_weights_are_those_of_their_step(monkeypatch, tmp_path):
    monkeypatch.setattr("frcnn_lite.engine.best.evaluate", Verdicts(0.2, 0.5, 0.5, 0.1))
    run = quiet(CONFIG, tmp_path / "run").run_dir
    assert [record["AP"] for record in load_run(run).history if "AP" in record] == [0.2, 0.5, 0.5, 0.1]
    best = load_run(run, best=True)
    assert best.step == 4 and len(best.history) == 4 and not best.model.training  # the first of the equal ones
    assert load_checkpoint(run / "best.pt")["data"] == CONFIG.shown()
    assert same_bits(best.model.state_dict(), load_weights(run / "best.pt").state_dict())

    def stop(record):
        if record["step"] == 3:
            raise KeyboardInterrupt

    stopped = quiet(replace(CONFIG, evaluate_every=0), tmp_path / "stopped", on_step=stop).run_dir
    assert same_bits(best.model.state_dict(), load_run(stopped).model.state_dict())


def test_resume_keeps_the_best_so_far(monkeypatch, tmp_path):
    monkeypatch.setattr("frcnn_lite.engine.best.evaluate", Verdicts(0.7, 0.9, 0.3, 0.6))
    config = replace(CONFIG, checkpoint_every=3)
    with pytest.raises(RuntimeError, match="power cut"):
        quiet(config, tmp_path / "run", on_step=crash_at(4))  # judged after 2 and 4 steps, saved after 3
    assert load_run(tmp_path / "run", best=True).step == 4
    # The step that had 0.9 is taken again, and judged 0.3 this time: 0.7 is the best that the log knows.
    monkeypatch.setattr("frcnn_lite.engine.best.evaluate", Verdicts(0.3, 0.6, 0.8))
    quiet(config, tmp_path / "run", resume=True)
    assert load_run(tmp_path / "run", best=True).step == 8


def test_a_crash_while_the_best_is_written_keeps_the_one_before(monkeypatch, tmp_path):
    monkeypatch.setattr("frcnn_lite.engine.best.evaluate", Verdicts(0.1, 0.2))
    replaced, honest = [], os.replace

    def fails_the_second_time(source, target):
        replaced.append(target.name)
        if replaced.count("best.pt") == 2:
            raise OSError("disk full")
        honest(source, target)

    monkeypatch.setattr(os, "replace", fails_the_second_time)
    with pytest.raises(OSError, match="disk full"):
        quiet(CONFIG, tmp_path / "run")
    assert load_run(tmp_path / "run", best=True).step == 2


def test_a_run_without_a_best_says_so_and_a_best_without_a_run_is_not_overwritten(unjudged, tmp_path):
    with pytest.raises(CheckpointError, match=r"no checkpoint at .*best\.pt"):
        load_run(unjudged.run_dir, best=True)
    (tmp_path / "best.pt").write_bytes(b"mine")
    with pytest.raises(FileExistsError, match=r"holds a run already \(best\.pt\)"):
        RunDirectory.require_free(tmp_path)
