"""The doctor on healthy and on broken machines; the broken ones are fake modules put first on the path."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from multigpu import doctor
from multigpu.doctor.probe import probe


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """Put modules in front of the real ones, for every child process the doctor starts."""

    def put(**modules):
        for name, source in modules.items():
            (tmp_path / f"{name}.py").write_text(source)
        before = [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *before]))
        doctor.ask_torch.cache_clear()

    yield put
    doctor.ask_torch.cache_clear()


ONE_GPU = Path(__file__).resolve().parents[2] / "vgpu" / "tests" / "one_gpu"
WORKING_TORCH = """
__version__ = {version!r}
class version: cuda = None
class cuda:
    @staticmethod
    def device_count(): return {devices}
"""


@pytest.mark.exhaustive
def test_this_machine_is_checked_for_what_it_has_and_the_report_is_json(tmp_path):
    pytest.importorskip("torch", reason="a machine without torch has a finding")
    command = [sys.executable, "-m", "multigpu", "doctor", "--json"]
    child = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    report = json.loads(child.stdout)
    optional = {"torchvision": "torchvision", "vgpu": "scatter", "jupyterlab": "kernel"}
    there = [check for package, check in optional.items() if doctor.installed(package)]
    names = [check["check"] for check in report["checks"]]
    assert names == ["python", "writing", "port", "torch", "devices", "handshake", *there]
    assert report["ok"] and child.returncode == 0, report


def test_in_a_checkout_of_the_notebooks_what_they_need_is_checked_and_mended_by_its_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(doctor, "installed", lambda package: "")
    assert "pip install --upgrade torch" in doctor.mend("torch")
    (tmp_path / "tasks.py").touch()
    (tmp_path / "notebooks").mkdir()
    assert doctor.mend("torch") == doctor.START_OVER and "make lab" in doctor.START_OVER
    monkeypatch.setattr(doctor, "AT_ONCE", (lambda: doctor.Finding("torch", True, "2.15.0"),))
    monkeypatch.setattr(doctor, "ON_TORCH", ())
    asked = {name: lambda name=name: doctor.Finding(name, True, "") for name in doctor.OPTIONAL}
    monkeypatch.setattr(doctor, "OPTIONAL", asked)
    assert [finding.check for finding in doctor.examine()] == ["torch", "torchvision", "vgpu", "jupyterlab"]


def test_cpu_torch_beside_cuda_torchvision_is_recognised_with_its_fix(broken, monkeypatch):
    torch = WORKING_TORCH.format(version="2.15.0+cpu", devices=0)
    broken(torch=torch, torchvision="raise RuntimeError('operator torchvision::nms does not exist')")
    monkeypatch.setattr(doctor, "installed", {"torch": "2.15.0+cpu", "torchvision": "0.29.2"}.get)
    found = doctor.check_torchvision()
    assert not found.ok
    assert "torch 2.15.0+cpu and torchvision 0.29.2 are different builds" in found.message
    assert "operator torchvision::nms does not exist" in found.message
    assert found.fix.endswith(f"--no-deps --index-url {doctor.CPU_INDEX} torch torchvision")


def test_missing_torch_leaves_out_what_needs_it(broken, capsys):
    broken(torch="raise ModuleNotFoundError(\"No module named 'torch'\")")
    assert doctor.main([]) == 1
    printed = capsys.readouterr().out
    assert "FAIL  torch        cannot be imported: ModuleNotFoundError: No module named 'torch'" in printed
    assert "fix: " in printed and "handshake" not in printed
    assert re.search(r"1 of [45] checks failed\s*$", printed)


def test_torch_that_crashes_is_a_finding_and_not_a_crash(broken):
    broken(torch="import os; os._exit(139)")
    found = doctor.check_torch()
    assert not found.ok and "exit code 139 and no message" in found.message


@pytest.mark.parametrize(
    ("version", "ok"), [("2.10.1", False), ("2.11.0", True), ("2.15.0+cpu", True), ("2.19.0", True)]
)
def test_torch_must_be_in_range(broken, version, ok):
    broken(torch=WORKING_TORCH.format(version=version, devices=0))
    found = doctor.check_torch()
    assert found.ok is ok
    assert ok or ("2.11 or newer is needed" in found.message and found.fix)


@pytest.mark.parametrize(("devices", "says"), [(0, "no CUDA device"), (1, "1 CUDA device;"), (4, "4 CUDA devices;")])
def test_devices_are_counted(broken, devices, says):
    broken(torch=WORKING_TORCH.format(version="2.15.0", devices=devices))
    found = doctor.check_devices()
    assert found.ok and found.message.startswith(says)


@pytest.mark.skipif(not ONE_GPU.is_dir(), reason="installed from no checkout, which alone makes a GPU up")
def test_one_real_gpu_is_hidden_while_virtual_ones_are_tried(monkeypatch):
    pytest.importorskip("vgpu", reason="tries virtual GPUs")
    monkeypatch.setenv("PYTHONPATH", str(ONE_GPU), prepend=os.pathsep)
    doctor.ask_torch.cache_clear()
    devices, scatter = doctor.check_devices(), doctor.check_scatter()
    doctor.ask_torch.cache_clear()
    assert devices.message == "1 CUDA device; notebooks that need more use virtual GPUs"
    assert scatter.ok, scatter


@pytest.mark.parametrize(
    ("version", "ok"), [((3, 10, 9), False), ((3, 11, 0), True), ((3, 13, 5), True), ((3, 14, 0), False)]
)
def test_python_must_be_in_range(monkeypatch, version, ok):
    monkeypatch.setattr(doctor.sys, "version_info", version)
    found = doctor.check_python()
    assert found.ok is ok
    assert ok or (">=3.11,<3.14" in found.message and found.fix)


def test_kernel_of_another_python_is_recognised(tmp_path, monkeypatch):
    pytest.importorskip("jupyter_client", reason="starts a kernel")
    pytest.importorskip("ipykernel", reason="starts a kernel")
    kernel = tmp_path / "kernels" / "python3"
    kernel.mkdir(parents=True)
    other = tmp_path / "other.py"
    other.write_text("import sys; sys.prefix = '/opt/other'\nfrom ipykernel.kernelapp import main\nmain()\n")
    spec = {"argv": [sys.executable, str(other), "-f", "{connection_file}"], "display_name": "x", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    found = doctor.check_kernel()
    assert not found.ok and "another Python: /opt/other" in found.message and "kernelspec remove" in found.fix


def test_missing_jupyter_names_the_package(broken):
    broken(jupyter_client="raise ModuleNotFoundError(\"No module named 'jupyter_client'\")")
    found = doctor.check_kernel()
    assert not found.ok and "pip install jupyterlab" in found.fix


def test_folder_that_cannot_be_written_is_named(monkeypatch, tmp_path):
    def refuse(dir):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(doctor.tempfile, "TemporaryFile", refuse)
    found = doctor.check_writing()
    assert not found.ok and "Permission denied" in found.message and found.fix


def test_closed_loopback_is_a_finding(monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError("Operation not permitted")

    monkeypatch.setattr(socket, "create_server", refuse)
    found = doctor.check_port()
    assert not found.ok and "firewall" in found.fix


@pytest.mark.parametrize("check", [doctor.check_handshake, doctor.check_scatter])
def test_broken_torch_fails_the_self_tests_with_a_fix(broken, check):
    broken(torch="raise OSError('libtorch_cpu.so: cannot open shared object file')")
    found = check()
    assert not found.ok and "libtorch_cpu.so" in found.message and found.fix


def test_a_probe_never_hangs():
    assert probe("-c", "import time; time.sleep(60)", seconds=0.2).complaint == "no answer after 0.2 s"
