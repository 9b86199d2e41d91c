"""A machine with one real GPU: whoever asks for virtual GPUs gets them, and hears once that they hide the real one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from vgpu.starting import autostart

MADE_UP = str(Path(__file__).with_name("one_gpu"))
README = Path(__file__).parents[1] / "README.md"
LINE = "vgpu: 1 real GPU of this machine is hidden while virtual ones are on\n"
# Where NumPy is not installed, PyTorch says so on stderr each time that it is imported.
QUIET = "ignore:Failed to initialize NumPy"
TELL = "import torch; print(torch.cuda.device_count(), torch.ones(1, device='cuda:1').device)"


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess:
    """Python on the machine that one_gpu/ makes up, as somebody starts it who has virtual GPUs nowhere yet."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("VGPUS", "PYTEST_", "CUDA_"))}
    path = os.pathsep.join(filter(None, [MADE_UP, os.environ.get("PYTHONPATH")]))
    command = [sys.executable, *map(str, arguments)]
    environment = {**kept, "PYTHONPATH": path, "PYTHONWARNINGS": QUIET, **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)


def test_torch_finds_one_gpu_there_which_computes_nothing():
    ask = "print(torch.cuda.is_available(), torch.accelerator.device_count(), torch.cuda.get_device_name())"
    done = run("-c", f"import torch; {ask}; torch.ones(1, device='cuda')")
    assert done.stdout == "True 1 made up\n" and done.returncode == 1, done.stderr


def test_blocks_switches_and_bad_numbers(tmp_path):
    (readmes,) = README.read_text(encoding="utf-8").split("```python\n")[1].split("```")[:1]
    (tmp_path / "program.py").write_text(
        f"{readmes}\n"
        "def count():\n"
        "    print(torch.cuda.device_count())\n"
        "count()\n"
        "with vgpu.virtual_gpus(2, force=False):\n"
        "    with vgpu.virtual_gpus(3):\n"
        "        count()\n"
        "    count()\n"
        "count()\n"
        "vgpu.enable(4)\n"
        "count()\n"
        "vgpu.disable()\n"
        "count()\n"
        "for gpus in (0, 65, '2'):\n"
        "    try:\n"
        "        vgpu.enable(gpus)\n"
        "    except (TypeError, ValueError) as error:\n"
        "        print(error)\n"
        "print(torch.cuda.is_available(), torch.cuda.is_initialized())\n"
    )
    done = run(tmp_path / "program.py")
    assert done.stdout.splitlines() == [
        *("cuda:0 2", "1", "3", "2", "1", "4", "1"),
        "gpus must be from 1 to 64, got 0",
        "gpus must be from 1 to 64, got 65",
        "gpus must be an int from 1 to 64, got '2' (str)",
        "True False",
    ], done.stderr
    assert done.stderr == LINE


def test_the_command_and_the_ranks_it_starts(tmp_path):
    (tmp_path / "program.py").write_text(f"{TELL}\nimport vgpu\nvgpu.disable()\nvgpu.enable(2)\n")
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    done = run("-m", "vgpu", "--gpus", "2", *torchrun, tmp_path / "program.py", OMP_NUM_THREADS="1")
    assert done.stdout == "2 cuda:1\n" * 2 and done.stderr.count(LINE) == 1, done.stderr


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_a_pytest_session(tmp_path, workers):
    if workers:
        pytest.importorskip("xdist", reason="starts workers of it")
    (tmp_path / "test_it.py").write_text(
        f"import pytest\ndef test_session():\n    {TELL}\n    assert torch.cuda.device_count() == 2\n"
        "def test_fixture(virtual_gpus):\n    assert len(virtual_gpus) == 2\n"
        "@pytest.mark.virtual_gpus(3)\ndef test_marker(virtual_gpus):\n    assert len(virtual_gpus) == 3\n"
    )
    done = run("-m", "pytest", "-q", "--vgpus", "2", *workers, tmp_path)
    assert "3 passed" in done.stdout and done.stderr == LINE, done.stdout + done.stderr


def test_the_variable_where_the_start_up_file_is_installed():
    done = run("-c", f"import sys; exec({autostart.LINE!r})\n{TELL}", VGPUS="2")
    assert done.stdout == "2 cuda:1\n" and done.stderr == LINE, done.stderr
