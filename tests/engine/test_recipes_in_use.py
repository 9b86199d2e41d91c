"""The recipes on the detector and on virtual GPUs; what each promises alone is tested in tests/recipes."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import frcnn_lite
import vgpu
from frcnn_lite.detection import FasterRCNN, FasterRCNNConfig
from frcnn_lite.engine import TrainConfig, train
from frcnn_lite.engine.checkpoint import load_checkpoint
from frcnn_lite.recipes.determinism import same_bits, seed_everything
from frcnn_lite.recipes.inplace import InPlaceError, name_inplace_writes
from frcnn_lite.recipes.param_groups import param_groups

RECIPES = sorted(Path(frcnn_lite.__file__).with_name("recipes").glob("[!_]*.py"))
TESTS = Path(__file__).resolve().parents[1] / "recipes"
TINY = FasterRCNNConfig(widths=(8, 16, 16), head_width=32, rpn_samples=16, proposals=16, roi_samples=8)

ALONE = """
import sys

class Refuse:
    def find_spec(self, name, *rest):
        if name.split(".")[0] in ("frcnn_lite", "vgpu", "course"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Refuse())
"""


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_and_its_test_run_where_this_package_is_not(recipe, tmp_path):
    """With torch and pytest alone: the copied test imports the copied file."""
    test = TESTS / f"test_{recipe.stem}.py"
    shutil.copy(recipe, tmp_path)
    text = test.read_text(encoding="utf-8")
    for old in (f"from frcnn_lite.recipes.{recipe.stem} import", f"from frcnn_lite.recipes import {recipe.stem}"):
        text = text.replace(old, f"from {recipe.stem} import" if old.endswith("import") else f"import {recipe.stem}")
    (tmp_path / test.name).write_text(text, encoding="utf-8")
    (tmp_path / "conftest.py").write_text(ALONE, encoding="utf-8")
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test.name]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout + done.stderr


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
