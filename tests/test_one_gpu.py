"""A machine with one real GPU, made up by packages/vgpu/tests/one_gpu: README's first program and a training on two."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess:
    """Python there, as a reader starts it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("VGPUS", "FRCNN_LITE"))}
    path = os.pathsep.join([str(ROOT / "packages" / "vgpu" / "tests" / "one_gpu"), str(ROOT)])
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, env={**kept, "PYTHONPATH": path}, capture_output=True, text=True)


def test_the_first_program_of_readme(tmp_path):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    program, printed = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", readme, re.DOTALL).groups()
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    done = run("program.py", cwd=tmp_path)
    assert done.stdout == printed, done.stderr
    assert done.stderr == "vgpu: 1 real GPU of this machine is hidden while virtual ones are on\n"


def test_training_on_more_gpus_than_there_are(tmp_path):
    few = ("--batch-size", 2, "--train-images", 4, "--test-images", 2, "--steps", 1)
    done = run("-m", "frcnn_lite", "train", "--data", "digits", "--gpus", 2, *few, "--out", "run", cwd=tmp_path)
    assert done.returncode == 0 and "1 steps of 2 images on 2 GPUs" in done.stderr, done.stderr
    assert done.stderr.count("hidden") == 1 and "2 virtual GPUs (real ones hidden: 1)" in done.stderr
