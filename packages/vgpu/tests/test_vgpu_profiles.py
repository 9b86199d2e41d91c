"""Which GPUs the virtual ones are: by name, from Python, the command line, the environment and pytest."""

import subprocess
import sys

import pytest
import torch
import vgpu_ranks

import vgpu
from vgpu.machine import memory, profiles

T4 = ("Tesla T4", (7, 5), 40)


def facts(device: int = 0) -> tuple:
    properties = torch.cuda.get_device_properties(device)
    return properties.name, torch.cuda.get_device_capability(device), properties.multi_processor_count


@pytest.mark.parametrize(
    ("profile", "expected", "gigabytes"),
    [
        ("t4", T4, 15.7),
        ("a100-40", ("NVIDIA A100-SXM4-40GB", (8, 0), 108), 42.3),
        ("a100-80", ("NVIDIA A100-SXM4-80GB", (8, 0), 108), 85.0),
        ("h100", ("NVIDIA H100 80GB HBM3", (9, 0), 132), 85.0),
        ("h200", ("NVIDIA H200", (9, 0), 132), 150.1),
        ("rtx4090", ("NVIDIA GeForce RTX 4090", (8, 9), 128), 25.4),
    ],
)
def test_a_profile_is_what_programs_decide_by(profile, expected, gigabytes):
    with vgpu.virtual_gpus(2, force=True, profile=profile):
        assert facts(1) == expected and torch.cuda.get_device_name(1) == expected[0]
        total = torch.cuda.get_device_properties(1).total_memory
        assert round(total / 1e9, 1) == gigabytes and torch.cuda.mem_get_info(0)[1] == total
        assert torch.cuda.is_bf16_supported() and torch.cuda.is_bf16_supported(False) == (profile != "t4")


def test_the_machine_before_comes_back_and_memory_may_be_chosen_too(gpus):
    before = facts(), torch.cuda.mem_get_info(0)[1]
    with vgpu.virtual_gpus(4, force=True, profile="t4", memory="1GiB"):
        assert facts() == T4 and torch.cuda.mem_get_info(0)[1] == 1 << 30
    assert (facts(), torch.cuda.mem_get_info(0)[1]) == before and before[1] == memory.share(4)


def test_an_unknown_one_is_an_error():
    with pytest.raises(ValueError, match=r"profile must be one of t4, a100-40, .*, got 'v100'"):
        vgpu.enable(2, force=True, profile="v100")
    assert set(profiles.PROFILES) == {"t4", "a100-40", "a100-80", "h100", "h200", "rtx4090"}


def test_spawned_children_have_it():
    with vgpu.virtual_gpus(2, force=True, profile="t4"):
        context = torch.multiprocessing.get_context("spawn")
        queue = context.SimpleQueue()
        child = context.Process(target=vgpu_ranks.name_of_gpu, args=(queue,))
        child.start()
        assert queue.get() == "Tesla T4"
        child.join(60)


def test_the_command_line_and_the_programs_below_it(tmp_path):
    (tmp_path / "inner.py").write_text("import torch\nprint(torch.cuda.get_device_name(1))\n")
    (tmp_path / "outer.py").write_text(
        "import subprocess, sys\nsubprocess.run([sys.executable, 'inner.py'], check=True)\n"
    )
    command = [sys.executable, "-m", "vgpu", "--gpus", "2", "--force", "--profile", "h100", "outer.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.stdout == "NVIDIA H100 80GB HBM3\n", done.stderr
    assert "vgpu: 2 virtual GPUs, 79.2 GiB each, NVIDIA H100 80GB HBM3" in done.stderr


@pytest.mark.exhaustive
def test_the_plugin(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import pytest, torch\n\n"
        "def test_session():\n"
        "    assert torch.cuda.get_device_name() == 'NVIDIA H200'\n\n"
        "@pytest.mark.virtual_gpus(1, force=True, profile='rtx4090')\n"
        "def test_marker():\n"
        "    assert torch.cuda.get_device_capability() == (8, 9)\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "--vgpus", "2", "--vgpus-force", "--vgpus-profile", "h200"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
