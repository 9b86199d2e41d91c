"""The program that docs/rivals.md compares tools with passes on virtual GPUs, so its table stays true of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "tools" / "rivals.py"


@pytest.mark.long
def test_fifteen_of_fifteen():
    pytest.importorskip("numpy", reason="PyTorch's collectives of objects need it")
    environment = {name: value for name, value in os.environ.items() if name != "RIVAL"}
    command = [sys.executable, "-W", "ignore", str(PROGRAM), "vgpu"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.stdout.splitlines()[-1] == "vgpu: 15 of 15" and done.returncode == 0, done.stdout + done.stderr
