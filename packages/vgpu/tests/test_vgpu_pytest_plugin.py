"""`pytest --vgpus N`, the fixture and the marker, each in a pytest of its own."""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = "vgpu.pytest_plugin"
INSTALLED = any(e.value == PLUGIN for e in importlib.metadata.entry_points(group="pytest11"))

TESTS = """
import pytest, torch

def test_session():
    assert torch.cuda.device_count() == SESSION

def test_fixture(virtual_gpus):
    assert [str(d) for d in virtual_gpus] == [f"cuda:{k}" for k in range(SESSION or 2)]
    assert torch.ones(1, device=virtual_gpus[-1]).is_cuda

@pytest.mark.virtual_gpus(3, memory="1MiB")
def test_marker():
    assert torch.cuda.device_count() == 3
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 20, device="cuda:2")

@pytest.mark.virtual_gpus(gpus=4)
class TestMarkedClass:
    def test_method(self, virtual_gpus):
        assert len(virtual_gpus) == 4
"""


def run_pytest(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    plugin = [] if INSTALLED else ["-p", PLUGIN]
    command = [sys.executable, "-m", "pytest", "-q", "--strict-markers", *plugin, *arguments]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("VGPUS", "PYTEST_"))} | environment
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=600)


def write(folder: Path, session: int) -> None:
    (folder / "test_it.py").write_text(TESTS.replace("SESSION", str(session)))


@pytest.mark.parametrize(
    ("session", "arguments", "environment"),
    [(0, (), {}), (4, ("--vgpus", "4", "--vgpus-force"), {}), (3, (), {"VGPUS": "3"})],
)
def test_option_environment_fixture_and_marker(tmp_path, session, arguments, environment):
    write(tmp_path, session)
    done = run_pytest(tmp_path, *arguments, **environment)
    assert "4 passed" in done.stdout, done.stdout + done.stderr


def test_workers_of_xdist(tmp_path):
    pytest.importorskip("xdist")
    write(tmp_path, 2)
    done = run_pytest(tmp_path, "--vgpus", "2", "--vgpus-force", "-n", "2")
    assert "4 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("number", ["0", "65"])
def test_an_impossible_number_is_a_usage_error(tmp_path, number):
    done = run_pytest(tmp_path, "--vgpus", number)
    assert done.returncode == 4 and f"--vgpus: gpus must be from 1 to 64, got {number}" in done.stderr


def test_it_costs_nothing_when_nobody_asks(tmp_path):
    (tmp_path / "test_plain.py").write_text("import sys\n\ndef test_it():\n    assert 'torch' not in sys.modules\n")
    assert "1 passed" in run_pytest(tmp_path).stdout
    assert "--vgpus=N" in run_pytest(tmp_path, "--help").stdout
