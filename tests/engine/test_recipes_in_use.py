"""The recipes on the detector and on virtual GPUs; what each promises alone is tested in tests/recipes."""

import random

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import vgpu
from frcnn_lite.detection import FasterRCNN, FasterRCNNConfig
from frcnn_lite.engine import TrainConfig, train
from frcnn_lite.engine.checkpoint import load_checkpoint
from frcnn_lite.recipes.determinism import same_bits, seed_everything
from frcnn_lite.recipes.inplace import InPlaceError, name_inplace_writes
from frcnn_lite.recipes.param_groups import param_groups

TINY = FasterRCNNConfig(widths=(8, 16, 16), head_width=32, rpn_samples=16, proposals=16, roi_samples=8)


def test_every_parameter_of_the_detector_is_in_exactly_one_group():
    model = FasterRCNN(FasterRCNNConfig())
    groups = param_groups(model, {"backbone": 0.1, "rpn": 1.0, "box_head": 2.0}, lr=0.5)
    assert {group["name"]: group["lr"] for group in groups} == {"backbone": 0.05, "rpn": 0.5, "box_head": 1.0}
    given = [parameter for group in groups for parameter in group["params"]]
    assert len(given) == len(set(given)) and set(given) == set(model.parameters())


def test_seeds_repeat_on_the_cpu_and_on_each_device():
    with vgpu.virtual_gpus(2):
        drawn = []
        for _ in range(2):
            seed_everything(7)
            cpu = [random.random(), float(np.random.random()), torch.rand(3)]
            drawn.append([*cpu, torch.rand(3, device="cuda:0"), torch.rand(3, device="cuda:1")])
    assert same_bits(*drawn)


def test_devices_may_differ_where_bits_do_not():
    with vgpu.virtual_gpus(1):
        report = same_bits([torch.ones(2, device="cuda:0")], [torch.ones(2)])
        assert report.compared == 1 and report


def test_a_write_on_a_gpu_is_named():
    with vgpu.virtual_gpus(2):
        logits = torch.zeros(2, 3, 4, 4, device="cuda:1", requires_grad=True)
        target = torch.zeros(2, 4, 4, dtype=torch.int64, device="cuda:1")
        with pytest.raises(InPlaceError) as caught, name_inplace_writes():
            loss = F.cross_entropy(logits, target)
            target.unsqueeze_(1)  # the guilty line
            loss.backward()
    assert [write.line.code for write in caught.value.writes] == ["target.unsqueeze_(1)  # the guilty line"]


@pytest.mark.parametrize("gpus", [0, 2])
def test_a_training_run_repeats_to_the_bit(tmp_path, gpus):
    config = TrainConfig(gpus=gpus, steps=2, batch_size=4, image_size=64, test_images=0, model=TINY)
    with vgpu.virtual_gpus(2):
        losses = [train(config, tmp_path / f"{gpus}_{k}", progress=False).losses for k in range(2)]
    states = [load_checkpoint(tmp_path / f"{gpus}_{k}" / "checkpoint.pt") for k in range(2)]
    assert same_bits(*losses) and same_bits(*states)
