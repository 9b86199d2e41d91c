"""The script of notebook 10 under plain torchrun: two and four ranks, on the CPU and on virtual GPUs, the same numbers.

The run on virtual GPUs is stopped after its first epoch with two ranks, and goes on with four.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "train_fsdp2.py"
LINE = re.compile(r"epoch (\d): gradient norm (\d+\.\d+), (\d+) of 325 right")


def train(folder, ranks, epochs, virtual=False):
    """What the script prints, a tuple of numbers for each epoch."""
    torchrun = ["torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    before = ["vgpu", "--gpus", str(ranks), "-m"] if virtual else []
    ran = subprocess.run(
        [sys.executable, "-m", *before, *torchrun, str(SCRIPT), str(folder), str(epochs)],
        env=os.environ | {"OMP_NUM_THREADS": "1"} | ({} if virtual else {"CUDA_VISIBLE_DEVICES": ""}),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    return [tuple(map(float, numbers)) for numbers in LINE.findall(ran.stdout)]


def test_two_and_four_ranks_on_the_cpu_and_on_virtual_gpus(tmp_path):
    expected = train(tmp_path / "two", 2, 2)
    assert [epoch for epoch, _, _ in expected] == [0, 1] and expected[1][2] > 250
    four = train(tmp_path / "four", 4, 2)
    virtual = train(tmp_path / "virtual", 2, 1, virtual=True) + train(tmp_path / "virtual", 4, 2, virtual=True)
    for found in (four, virtual):
        for (epoch, norm, right), (its_epoch, its_norm, its_right) in zip(found, expected, strict=True):
            assert epoch == its_epoch and norm == pytest.approx(its_norm, abs=0.002) and abs(right - its_right) <= 1


def test_it_is_short():
    assert len(SCRIPT.read_text(encoding="utf-8").splitlines()) <= 60
