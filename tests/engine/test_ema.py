"""The exponential moving average of the weights: an observer of the run, and what the run hands on."""

from dataclasses import replace

import pytest
import torch

import vgpu
from frcnn_lite.data import DigitScenes, collate
from frcnn_lite.engine import Pictures, TrainConfig, Trainer, evaluate, load_run, train
from frcnn_lite.engine.checkpoint import load_checkpoint
from frcnn_lite.recipes.determinism import same_bits

CONFIG = TrainConfig(
    steps=6, batch_size=2, image_size=64, train_images=12, test_images=0, warmup_steps=0, averaging=0.5
)


def quiet(config, out, **arguments):
    return train(config, out, progress=False, **arguments)


def stop_after_three(record):
    if record["step"] == 2:
        raise KeyboardInterrupt


def test_it_is_the_average_of_the_formula():
    trainer, expected = Trainer(CONFIG), {}
    scenes = DigitScenes("train", 6, size=64)
    for step in range(3):
        trainer.take_step(collate([scenes[2 * step], scenes[2 * step + 1]]))
        for name, weight in trainer.model.named_parameters():
            now = weight.detach().double()
            expected[name] = now if step == 0 else CONFIG.ema * expected[name] + (1 - CONFIG.ema) * now
    assert trainer.detector is not trainer.model
    for name, weight in trainer.detector.named_parameters():
        torch.testing.assert_close(weight.detach().double(), expected[name], rtol=1e-5, atol=1e-7)


def test_the_average_is_judged_and_saved_and_the_curve_is_as_without(tmp_path):
    config = replace(CONFIG, test_images=4, evaluate_every=3)
    averaged, plain = quiet(config, tmp_path / "a"), quiet(replace(config, averaging=0.0), tmp_path / "b")
    assert averaged.losses == plain.losses
    first, second = load_run(averaged.run_dir), load_run(plain.run_dir)
    assert not same_bits(first.model.state_dict(), second.model.state_dict())
    assert evaluate(first.model, Pictures().held_out(config), batch_size=2) == averaged.evaluation
    kept = load_checkpoint(averaged.run_dir / "checkpoint.pt")["trainer"]
    assert same_bits(kept["model"], second.model.state_dict())
    stopped = quiet(config, tmp_path / "c", on_step=stop_after_three).run_dir
    best = load_run(averaged.run_dir, best=True)
    if best.step == 3:
        assert same_bits(best.model.state_dict(), load_run(stopped).model.state_dict())
    else:
        assert same_bits(best.model.state_dict(), first.model.state_dict())


@pytest.mark.parametrize("gpus", [0, 2])
def test_resume_changes_no_bit(gpus, tmp_path):
    config = replace(CONFIG, gpus=gpus)
    with vgpu.virtual_gpus(2):
        whole = quiet(config, tmp_path / "whole")
        quiet(config, tmp_path / "run", on_step=stop_after_three)
        resumed = quiet(config, tmp_path / "run", resume=True)
    assert resumed.losses == whole.losses
    first, second = (load_checkpoint(run.run_dir / "checkpoint.pt")["trainer"] for run in (whole, resumed))
    assert same_bits(first["average"], second["average"]) and first["average"]["n_averaged"] == 6
