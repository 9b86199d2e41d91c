"""Programs that a virtual program starts, in a bare environment: torch and vgpu are there, a start-up file is not."""

import importlib.metadata
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import vgpu
from vgpu.starting import autostart, inherit

PLUGIN = "vgpu.pytest_plugin"
INSTALLED = any(entry.value == PLUGIN for entry in importlib.metadata.entry_points(group="pytest11"))
HOME = str(Path(vgpu.__file__).resolve().parents[1])
TELL = (
    "import torch, os; "
    "print(os.environ.get('RANK', '-'), torch.cuda.device_count(), torch.ones(1, device='cuda').device)"
)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment that reads the packages of this one, but none of its start-up files."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=os.name != "nt")
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    asked = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
    # A path that a .pth file names is searched for modules; .pth files that lie there are not read.
    paths = dict.fromkeys([HOME, sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    (packages / "borrowed.pth").write_text("\n".join(paths) + "\n")
    return python


def run(*command: object, **environment: str) -> subprocess.CompletedProcess:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("VGPUS", "PYTEST_", "PYTHON"))}
    words = list(map(str, command))
    return subprocess.run(words, env={**kept, **environment}, capture_output=True, text=True, timeout=600)


def test_the_variable_alone_does_nothing_where_nobody_asked_for_it(bare):
    done = run(bare, "-c", "import sys, torch; print([m for m in sys.modules if m.startswith('vgpu')])", VGPUS="2")
    assert done.stdout == "[]\n", done.stderr


def test_a_child_started_by_subprocess_is_virtual(bare, tmp_path):
    program = tmp_path / "parent.py"
    program.write_text(f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {TELL!r}], check=True)\n")
    done = run(bare, "-m", "vgpu", "--gpus", "3", "--force", program)
    assert done.stdout == "- 3 cuda:0\n", done.stderr


def test_ranks_of_torchrun_are_virtual(bare, tmp_path):
    program = tmp_path / "rank.py"
    program.write_text(f"{TELL}\nopen(__file__ + os.environ['RANK'], 'w').write(str(torch.cuda.device_count()))\n")
    launch = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", program)
    done = run(bare, "-m", "vgpu", "--gpus", "2", "--force", *launch)
    assert done.returncode == 0, done.stderr
    assert [Path(f"{program}{rank}").read_text() for rank in (0, 1)] == ["2", "2"]


def test_children_of_a_pytest_session_are_virtual(bare, tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import subprocess, sys\n"
        "def test_child():\n"
        f"    done = subprocess.run([sys.executable, '-c', {TELL!r}], capture_output=True, text=True)\n"
        "    assert done.stdout == '- 4 cuda:0\\n', done.stderr\n"
    )
    plugin = [] if INSTALLED else ["-p", PLUGIN]
    done = run(bare, "-m", "pytest", "-q", *plugin, "--vgpus", "4", "--vgpus-force", tmp_path)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_a_sitecustomize_of_the_environment_is_still_run(bare, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("MARK = 'the own one'\n")
    code = "import sitecustomize, torch; print(sitecustomize.MARK, torch.cuda.device_count())"
    environment = {**inherit.for_children(2), "PYTHONPATH": os.pathsep.join([inherit.CHILDREN, str(tmp_path)])}
    assert run(bare, "-c", code, **environment).stdout == "the own one 2\n"


def test_an_interpreter_without_the_package_starts_as_always(tmp_path):
    venv.create(tmp_path / "empty", symlinks=os.name != "nt")
    python = tmp_path / "empty" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = run(python, "-c", "print('fine')", **inherit.for_children(2))
    assert (done.stdout, done.stderr) == ("fine\n", "")


def test_the_path_of_the_parent_is_kept_and_the_folder_named_once(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["one", inherit.CHILDREN, "two"]))
    assert inherit.for_children(2)["PYTHONPATH"].split(os.pathsep) == [inherit.CHILDREN, "one", "two"]


class TestAutostart:
    """`python -m vgpu autostart`: the start-up file in site-packages, added and taken away by command only."""

    @pytest.mark.exhaustive
    def test_installed_used_and_removed(self, bare):
        added = run(bare, "-m", "vgpu", "autostart", "--install")
        assert added.returncode == 0 and "works in this environment" in added.stdout, added.stderr
        assert run(bare, "-c", TELL, VGPUS="4").stdout == "- 4 cuda:0\n"
        assert "works" in run(bare, "-m", "vgpu", "autostart").stdout
        assert "does nothing" in run(bare, "-m", "vgpu", "autostart", "--remove").stdout
        assert "does nothing" in run(bare, "-m", "vgpu", "autostart", "--remove").stdout

    @pytest.mark.parametrize("isolated", [(), ("-I",)])
    def test_a_line_that_was_left_behind_does_nothing(self, isolated):
        code = f"exec({autostart.LINE!r}); print('fine')"
        done = run(sys.executable, "-S", *isolated, "-c", code, VGPUS="4")  # -S: without the packages
        assert (done.stdout, done.stderr) == ("fine\n", "")

    def test_nobody_has_it_after_an_installation_alone(self):
        """The package has no file that an interpreter would read by itself."""
        assert not list(Path(vgpu.__file__).parent.rglob("*.pth"))


def start_python(code: str, **environment: str) -> subprocess.CompletedProcess:
    """A fresh interpreter that reads the line of the start-up file, as one does that has it installed."""
    read = f"import sys; sys.path.insert(0, {HOME!r}); exec({autostart.LINE!r})\n"
    return run(sys.executable, "-c", read + code, **environment)


class TestStartUp:
    def test_the_variable_alone_makes_a_program_virtual(self):
        done = start_python("import torch\nprint(torch.ones(1, device='cuda:3').device)", VGPUS="4")
        assert done.stdout == "cuda:3\n", done.stderr

    def test_without_the_variable_nothing_is_imported(self):
        done = start_python("print([m for m in sys.modules if m.startswith('vgpu')], 'torch' in sys.modules)")
        assert done.stdout == "[] False\n", done.stderr

    def test_a_program_without_torch_does_not_import_it(self):
        done = start_python("print('torch' in sys.modules)", VGPUS="2")
        assert done.stdout == "False\n" and done.stderr == ""

    def test_a_wrong_number_is_named(self):
        done = start_python("import torch", VGPUS="many")
        assert "VGPUS must be a number from 1 to 64, it is 'many'" in done.stderr
