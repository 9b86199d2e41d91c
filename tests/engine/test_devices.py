"""Training on several devices: virtual GPUs, because every machine has those."""

from dataclasses import replace

import pytest
import torch
from torch import nn

import vgpu
from frcnn_lite.data import DigitScenes
from frcnn_lite.engine import TrainConfig, Trainer, evaluate, load_run, train
from frcnn_lite.engine.devices import main_device, spread

# Constant and small steps: rounding differs between one chunk and two, and large steps amplify it.
CONFIG = TrainConfig(steps=4, batch_size=5, image_size=64, train_images=20, test_images=0, warmup_steps=0, lr=1e-3)


def curve(gpus, out, **changes):
    with vgpu.virtual_gpus(max(gpus, 1)):
        return train(replace(CONFIG, gpus=gpus, **changes), out, progress=False)


@pytest.mark.parametrize("gpus", [1, 2, 3])
def test_the_curve_does_not_depend_on_the_number_of_devices(gpus, tmp_path):
    """Batches of 5: chunks of 3 and 2, or of 2, 2 and 1."""
    alone = curve(0, tmp_path / "cpu").history
    for expected, got in zip(alone, curve(gpus, tmp_path / "gpus").history, strict=True):
        assert got == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_gradients_of_the_first_step_agree(tmp_path):
    with vgpu.virtual_gpus(2):
        from frcnn_lite.data import collate

        batch = collate([DigitScenes("train", 5, size=64)[i] for i in range(5)])
        one, two = Trainer(CONFIG), Trainer(replace(CONFIG, gpus=2))
        one.take_step(batch), two.take_step(batch)
        assert isinstance(two.net, nn.DataParallel) and two.device == torch.device("cuda:0")
        for a, b in zip(one.model.parameters(), two.model.parameters(), strict=True):
            difference = (a.grad - b.grad.cpu()).abs().max()
            assert difference <= 1e-5 * a.grad.abs().max()


def test_a_run_begun_on_the_cpu_goes_on_on_two_gpus_and_back(tmp_path):
    whole = curve(0, tmp_path / "whole").losses

    def stop(record):
        raise KeyboardInterrupt

    with vgpu.virtual_gpus(2):
        config = replace(CONFIG, gpus=0)
        train(config, tmp_path / "run", progress=False, on_step=stop)
        train(replace(config, gpus=2), tmp_path / "run", progress=False, on_step=stop, resume=True)
        assert load_run(tmp_path / "run").step == 2
        resumed = train(config, tmp_path / "run", progress=False, resume=True)
    assert resumed.losses == pytest.approx(whole, rel=1e-5)


def test_a_checkpoint_from_a_gpu_loads_where_there_is_none(tmp_path):
    run = curve(2, tmp_path / "run", steps=1).run_dir
    state = torch.load(run / "checkpoint.pt", weights_only=True)
    flat = [*state["trainer"]["model"].values()]
    flat += [t for slot in state["trainer"]["optimizer"]["state"].values() for t in slot.values()]
    assert {tensor.device.type for tensor in flat} == {"cpu"}
    assert not any(name.startswith("module.") for name in state["trainer"]["model"])


def test_evaluation_on_a_device_gives_the_same_precision(tmp_path):
    scenes = DigitScenes("test", 6, size=64)
    model = load_run(curve(0, tmp_path / "run").run_dir).model
    on_cpu = evaluate(model, scenes)
    with vgpu.virtual_gpus(1):
        on_gpu = evaluate(model.to("cuda:0"), scenes)
    assert on_gpu == on_cpu


def test_spread():
    with vgpu.virtual_gpus(3):
        assert isinstance(spread(nn.Linear(1, 1), 0), nn.Linear)
        assert next(spread(nn.Linear(1, 1), 1).parameters()).device == torch.device("cuda:0")
        assert spread(nn.Linear(1, 1), 3).device_ids == [0, 1, 2]
        for gpus in (-1, 4, 99):
            with pytest.raises(ValueError, match=f"`gpus` must be between 0 and 3.*got {gpus}"):
                main_device(gpus)
