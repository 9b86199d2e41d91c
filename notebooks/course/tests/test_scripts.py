"""The programs of notebooks/scripts under plain torchrun: equal results on the CPU and on virtual GPUs."""

import os
import re
import subprocess
import sys

import pytest
import torch

from course.files import SCRIPTS

DEVICES = ("cpu", "virtual")
LINES = 60  # a program that a reader copies is read in one go
TRAIN_DDP = SCRIPTS / "train_ddp.py"
TRAIN_FSDP2 = SCRIPTS / "train_fsdp2.py"
EPOCH = re.compile(r"epoch (\d): gradient norm (\d+\.\d+), (\d+) of 325 right")


def torchrun(ranks: int, device: str, *program: object) -> str:
    """What a program prints on so many ranks; device: "cpu", or "virtual" for a virtual GPU each."""
    virtual = ["-m", "vgpu", "--force", "--gpus", str(ranks)] if device == "virtual" else []
    command = [*virtual, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", *map(str, program)]
    hidden = {"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else {}  # a machine with GPUs is to use its CPU
    ended = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=300, env={**os.environ, **hidden}
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def stopped_after(epochs: int, folder) -> object:
    """The program as if somebody had ended it after so many epochs."""
    shorter = folder / "stopped.py"
    text = TRAIN_DDP.read_text(encoding="utf-8")
    assert text.count("EPOCHS, BATCH = 4, 64") == 1
    shorter.write_text(text.replace("EPOCHS, BATCH = 4, 64", f"EPOCHS, BATCH = {epochs}, 64"), encoding="utf-8")
    return shorter


def test_ddp_gives_equal_results_on_the_cpu_and_on_gpus_with_two_and_four_ranks(tmp_path):
    """The last one goes on with what the one before has saved, on the CPU, after two of four epochs."""
    four = tmp_path / "4.pt"
    said = {
        "cpu": torchrun(2, "cpu", TRAIN_DDP, tmp_path / "cpu 2.pt"),
        "virtual": torchrun(2, "virtual", TRAIN_DDP, tmp_path / "virtual 2.pt"),
        "four": torchrun(4, "cpu", stopped_after(2, tmp_path), four) + torchrun(4, "virtual", TRAIN_DDP, four),
    }
    assert len(said["cpu"].splitlines()) == 4 and "of 325 right" in said["cpu"]  # one rank prints
    assert said["cpu"] == said["virtual"] == said["four"]
    kept = [torch.load(tmp_path / name, map_location="cpu") for name in ("cpu 2.pt", "virtual 2.pt", "4.pt")]
    for other in kept[1:]:
        assert other["epoch"] == kept[0]["epoch"] == 3
        torch.testing.assert_close(other["net"], kept[0]["net"], rtol=1e-4, atol=1e-5)
    assert not list(tmp_path.glob("*.new"))


def test_fsdp2_gives_equal_results_on_the_cpu_and_on_gpus_with_two_and_four_ranks(tmp_path):
    """On virtual GPUs two ranks train the first epoch, and four go on with their checkpoint."""

    def trained(ranks, device, folder, epochs):
        said = EPOCH.findall(torchrun(ranks, device, TRAIN_FSDP2, tmp_path / folder, epochs))
        return [tuple(map(float, numbers)) for numbers in said]

    expected = trained(2, "cpu", "two", 2)
    assert [epoch for epoch, _, _ in expected] == [0, 1] and expected[1][2] > 250
    four = trained(4, "cpu", "four", 2)
    virtual = trained(2, "virtual", "virtual", 1) + trained(4, "virtual", "virtual", 2)
    for found in (four, virtual):
        for (epoch, norm, right), (its_epoch, its_norm, its_right) in zip(found, expected, strict=True):
            assert epoch == its_epoch and norm == pytest.approx(its_norm, abs=0.002) and abs(right - its_right) <= 1


def test_tensor_parallel_gives_equal_results_on_the_cpu_and_on_gpus_with_two_and_four_ranks():
    said = {
        (n, device): torchrun(n, device, SCRIPTS / "train_tensor_parallel.py") for n in (2, 4) for device in DEVICES
    }
    for (n, _), text in said.items():
        *epochs, held = text.splitlines()
        assert epochs == said[2, "cpu"].splitlines()[:-1] and len(epochs) == 4
        assert held == f"rank 0 holds {32768 // n} of 32768 weights of the two large layers"
    assert int(re.search(r"epoch 3: (\d+) of 325 right", said[2, "cpu"])[1]) > 270


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.py")), ids=lambda path: path.name)
def test_a_program_is_short_enough_to_be_shown_whole(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LINES
