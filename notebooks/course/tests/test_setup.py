"""notebook.setup: one line, the right devices, safe to call again."""

import os
import random
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch

import vgpu
from course.kit import setup as notebook
from course.kit.files import SCRIPTS

ONE_GPU = SCRIPTS.parents[1] / "packages" / "vgpu" / "tests" / "one_gpu"

BANNER = (
    "2 virtual GPUs: cuda:0, cuda:1. Devices, results and errors as on real ones; "
    "computed on the CPU, so times mean nothing.\n"
)


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    monkeypatch.setenv("FRCNN_LITE_DEVICES", "virtual")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with warnings.catch_warnings():
        yield
    vgpu.disable()


@pytest.fixture
def real(monkeypatch):
    """Pretend the machine had real GPUs."""

    def pretend(count: int) -> None:
        monkeypatch.setenv("FRCNN_LITE_DEVICES", "")
        monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)

    return pretend


def test_virtual_devices_and_their_banner(capsys):
    assert notebook.setup(gpus=2) == [torch.device("cuda:0"), torch.device("cuda:1")]
    assert capsys.readouterr().out == BANNER
    assert vgpu.is_enabled() and torch.cuda.device_count() == 2


def test_calling_it_twice_changes_nothing_but_the_seeds(capsys):
    notebook.setup(gpus=2)
    x = torch.ones(2, device="cuda:1")
    torch.cuda.set_device(1)
    assert notebook.setup(gpus=2) == [torch.device("cuda:0"), torch.device("cuda:1")]
    assert capsys.readouterr().out == BANNER * 2
    assert torch.cuda.current_device() == 1 and (x + 1).tolist() == [2, 2]


def test_another_number_is_said_and_old_tensors_live_on(capsys):
    notebook.setup(gpus=2)
    x = torch.ones(2, device="cuda:1")
    notebook.setup(gpus=4)
    assert capsys.readouterr().out.splitlines()[1].startswith("4 virtual GPUs (before this call: 2): cuda:0, cuda:1")
    assert torch.cuda.device_count() == 4 and (x.cuda(3) + 1).tolist() == [2, 2]


def test_everything_is_seeded():
    def draw() -> tuple:
        where = torch.device("cuda:1")
        return random.random(), np.random.rand(), torch.rand(1).item(), torch.rand(1, device=where).item()

    notebook.setup(seed=3)
    first = draw()
    notebook.setup(seed=3)
    assert draw() == first
    notebook.setup(seed=4)
    assert draw() != first


def test_real_gpus_are_taken_when_there_are_enough(real, capsys):
    real(2)
    devices = notebook.setup(gpus=2)
    assert devices == [torch.device("cuda:0"), torch.device("cuda:1")]
    assert capsys.readouterr().out == "2 real GPUs: cuda:0, cuda:1.\n" and not vgpu.is_enabled()


def test_one_real_gpu_is_too_few_and_the_banner_says_so(real, capsys):
    real(1)
    notebook.setup(gpus=2)
    assert "This machine has 1 real." in capsys.readouterr().out and vgpu.is_enabled()


def test_with_one_real_gpu_a_notebook_prints_what_is_stored():
    """On the machine that packages/vgpu makes up. What a cell switches on itself adds nothing on stderr, either."""
    program = "import os, vgpu\nfrom course.kit.setup import setup\nsetup(gpus=2)\nvgpu.disable()\nvgpu.enable(2)\n"
    program += "vgpu.disable()\nos.environ['FRCNN_LITE_DEVICES'] = ''\nsetup(gpus=2)\nvgpu.disable()\nsetup(gpus=1)\n"
    environment = {name: value for name, value in os.environ.items() if name != "VGPUS_QUIET"}
    environment["PYTHONPATH"] = str(ONE_GPU)
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.stdout.startswith(BANNER) and done.stderr == "", done.stderr
    assert "This machine has 1 real." in done.stdout and done.stdout.endswith("1 real GPU: cuda:0.\n")


def test_demanding_real_gpus(real, monkeypatch):
    real(1)
    monkeypatch.setenv("FRCNN_LITE_DEVICES", "real")
    with pytest.raises(RuntimeError, match="2 real GPUs are needed and this machine has 1"):
        notebook.setup(gpus=2)
    assert not vgpu.is_enabled()


@pytest.mark.parametrize(("gpus", "error"), [(0, ValueError), (-1, ValueError), (99, ValueError), ("2", TypeError)])
def test_bad_numbers(gpus, error):
    with pytest.raises(error, match="gpus must be"):
        notebook.setup(gpus=gpus)


def test_a_bad_choice_of_devices(monkeypatch):
    monkeypatch.setenv("FRCNN_LITE_DEVICES", "fake")
    with pytest.raises(ValueError, match="must be 'virtual' or 'real', or not set; it is 'fake'"):
        notebook.setup()


def test_a_schedulers_visible_devices_do_not_shrink_the_machine(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    notebook.setup(gpus=2)
    assert torch.cuda.device_count() == 2


def test_figures_are_functions_of_their_data():
    matplotlib = pytest.importorskip("matplotlib")
    notebook.setup()
    assert matplotlib.rcParams["svg.hashsalt"] == "frcnn_lite"
