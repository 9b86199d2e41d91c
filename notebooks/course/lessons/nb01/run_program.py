"""Run the text of a program on virtual GPUs, in a process of its own."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path


def run_program(text: str, gpus: int) -> list[str]:
    """The lines that it prints. Raises CalledProcessError if the program fails."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "program.py")
        file.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "vgpu", "--force", "--gpus", str(gpus), str(file)]
        given = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
        ended = subprocess.run(command, capture_output=True, text=True, check=True, env=given)
    return ended.stdout.splitlines()
