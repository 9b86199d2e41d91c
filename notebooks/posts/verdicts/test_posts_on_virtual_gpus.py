"""The programs of the posts, as printed there, on virtual GPUs."""

import subprocess
import sys
from pathlib import Path

POSTS = Path(__file__).resolve().parents[1]


def run(gpus: int, post: str) -> list[str]:
    command = [sys.executable, "-m", "vgpu", "--gpus", str(gpus), "--force", str(POSTS / post)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    return done.stdout.splitlines()


def test_the_first_program_of_post_003_prints_the_shapes_of_the_post():
    lines = run(3, "003_program_1.py")
    assert lines[1:] == [
        "y1: torch.Size([5, 3, 128, 128]), y2:torch.Size([1, 100, 200])",
        "y3: torch.Size([10, 3, 128, 128]), y4:torch.Size([1, 100, 200])",
    ]


def test_on_one_gpu_nothing_is_lost():
    assert "y1: torch.Size([10, 3, 128, 128])" in run(2, "003_program_1.py")[1]
