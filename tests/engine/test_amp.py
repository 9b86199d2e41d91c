"""Automatic mixed precision: half precision in the layers, and everything that counts in float32."""

import warnings
from dataclasses import replace

import pytest
import torch

import vgpu
from frcnn_lite.data import DigitScenes, collate
from frcnn_lite.detection import FasterRCNNConfig
from frcnn_lite.engine import TrainConfig, Trainer, load_run, train
from frcnn_lite.parallel import rows_of_rank
from frcnn_lite.recipes.determinism import same_bits

# Narrow, since float16 is many times slower than float32 on a processor: no layer is missing.
MODEL = FasterRCNNConfig(widths=(16, 16, 16), roi_channels=8, group_width=4, head_width=32)
CONFIG = TrainConfig(
    steps=6, batch_size=4, image_size=64, train_images=12, test_images=0, warmup_steps=0, lr=1e-3, amp=True, model=MODEL
)


def batch(images=4):
    scenes = DigitScenes("train", images, size=64)
    return collate([scenes[index] for index in range(images)])


def stop_after_three(record):
    if record["step"] == 2:
        raise KeyboardInterrupt


def seen_dtypes(trainer):
    """The dtypes that the layers' outputs, the losses' inputs and the weights had in one step."""
    seen = {}
    trainer.model.rpn.conv.register_forward_hook(lambda module, args, output: seen.update(layer=output.dtype))
    trainer.model.rpn.register_forward_hook(lambda module, args, output: seen.update(deltas=output.deltas.dtype))
    trainer.model.box_head.register_forward_hook(lambda module, args, output: seen.update(logits=output[0].dtype))
    trainer.take_step(batch())
    return seen


def test_layers_compute_in_half_precision_and_losses_do_not():
    trainer = Trainer(CONFIG)
    assert seen_dtypes(trainer) == {"layer": torch.bfloat16, "deltas": torch.float32, "logits": torch.float32}
    assert {parameter.dtype for parameter in trainer.model.parameters()} == {torch.float32}
    assert {parameter.grad.dtype for parameter in trainer.model.parameters()} == {torch.float32}


@pytest.mark.parametrize("gpus", [1, 2])
def test_float16_reaches_every_replica(gpus):
    with vgpu.virtual_gpus(2):
        trainer = Trainer(replace(CONFIG, gpus=gpus))
        expected = {"layer": torch.float16, "deltas": torch.float32, "logits": torch.float32}
        assert seen_dtypes(trainer) == expected and trainer.scaler.is_enabled()
        assert {parameter.dtype for parameter in trainer.model.parameters()} == {torch.float32}


@pytest.mark.parametrize("gpus", [0, 1, 2])
def test_losses_are_close_to_those_of_float32(gpus, tmp_path):
    with vgpu.virtual_gpus(2), warnings.catch_warnings():
        warnings.simplefilter("error")  # GradScaler and scheduler warn when their steps do not go together
        full = train(replace(CONFIG, amp=False), tmp_path / "full", progress=False).losses
        half = train(replace(CONFIG, gpus=gpus), tmp_path / "half", progress=False).losses
    assert half != full and half == pytest.approx(full, rel=0.05)


def three_steps(gpus):
    """Losses and the scale after them; of each rank, where there are ranks."""
    trainer, scenes = Trainer(replace(CONFIG, gpus=gpus)), DigitScenes("train", 4, size=64)
    mine = collate([scenes[row] for row in rows_of_rank(4)])
    return [trainer.take_step(mine)["loss"] for _ in range(3)], trainer.scaler.get_scale()


def test_replicas_and_ranks_compute_what_one_gpu_does():
    with vgpu.virtual_gpus(2):
        losses, scale = three_steps(1)
        replicas, ranks = three_steps(2), vgpu.ranks(2)(three_steps)(2)
    assert ranks[0] == ranks[1]  # the sums of all ranks, and one scale
    for found, its_scale in (replicas, ranks[0]):
        assert found == pytest.approx(losses, rel=5e-3) and its_scale == scale


@pytest.mark.parametrize("gpus", [0, 2])
def test_resume_changes_no_bit(gpus, tmp_path):
    config = replace(CONFIG, gpus=gpus)
    with vgpu.virtual_gpus(2):
        whole = train(config, tmp_path / "whole", progress=False)
        train(config, tmp_path / "run", progress=False, on_step=stop_after_three)
        resumed = train(config, tmp_path / "run", progress=False, resume=True)
    assert resumed.losses == whole.losses
    first, second = (load_run(run.run_dir).model.state_dict() for run in (whole, resumed))
    assert same_bits(first, second)


def test_a_gradient_that_runs_over_leaves_the_weights_and_lowers_the_scale():
    with vgpu.virtual_gpus(1):
        trainer = Trainer(replace(CONFIG, gpus=1))
        trainer.take_step(batch())
        before = {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}
        trainer.scaler.update(2.0**120)
        assert trainer.take_step(batch())["loss"] > 0
        assert same_bits(before, trainer.model.state_dict()) and trainer.scaler.get_scale() == 2.0**119


def test_amp_is_a_choice_between_two():
    with pytest.raises(TypeError, match="`amp` must be True or False, got 1"):
        replace(CONFIG, amp=1)
