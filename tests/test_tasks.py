"""tasks.py: what would be installed and run, and what happens to an environment that no longer fits."""

import importlib
import importlib.util
import os
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def tasks(tmp_path, monkeypatch):
    """tasks.py, loaded afresh on an empty project folder."""
    spec = importlib.util.spec_from_file_location("tasks_under_test", ROOT / "tasks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in (
        "pyproject.toml",
        "packages/vgpu/pyproject.toml",
        "packages/multigpu/pyproject.toml",
        "constraints.txt",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(module, "STAMP", tmp_path / ".venv" / "set-up.json")
    return module


@pytest.fixture
def steps(tasks, monkeypatch):
    """The commands set_up would run; creating the environment leaves an interpreter behind, as venv does."""
    ran = []

    def record(command, failure):
        ran.append(command)
        if "venv" in command:
            tasks.venv_python().parent.mkdir(parents=True)
            tasks.venv_python().touch()

    monkeypatch.setattr(tasks, "run", record)
    return ran


def record_runs(tasks, monkeypatch, codes):
    """Replace subprocess.run: the commands it was given, which return `codes` in turn."""
    ran, codes = [], iter(codes)

    def run(command, **_):
        ran.append(command)
        return subprocess.CompletedProcess(command, next(codes))

    monkeypatch.setattr(tasks.subprocess, "run", run)
    return ran


def test_default_set_up_is_one_locked_pip_install(tasks):
    (_, command), _ = tasks.install_commands(Path("python"), "default")
    assert command[:4] == ["python", "-m", "pip", "install"]
    assert command[command.index("--constraint") + 1] == str(tasks.ROOT / "constraints.txt")
    packages = [f"{tasks.ROOT / 'packages' / name}[test]" for name in ("vgpu", "multigpu")]
    assert command[-6::2] == ["--editable"] * 3 and command[-5::2] == [*packages, f"{tasks.ROOT}[course,dev]"]
    assert "--index-url" not in command


def test_cpu_set_up_takes_torch_alone_from_pytorchs_index(tasks):
    (_, wheels), (_, project), _ = tasks.install_commands(Path("python"), "cpu")
    assert wheels[wheels.index("--index-url") + 1] == "https://download.pytorch.org/whl/cpu"
    assert "--no-deps" in wheels and wheels[-2:] == ["torch", "torchvision"]
    assert "--constraint" in wheels and "--constraint" in project
    assert "--index-url" not in project


def kinds(steps):
    """What each command of a set-up is for."""
    signs = {"venv": "venv", "--index-url": "wheels", "pip": "packages", "-c": "course"}
    return [next(kind for sign, kind in signs.items() if sign in command) for command in steps]


def test_second_set_up_runs_nothing(tasks, steps):
    tasks.set_up()
    assert kinds(steps) == ["venv", "packages", "course"]
    tasks.set_up()
    assert kinds(steps) == ["venv", "packages", "course"]


def test_the_course_is_imported_from_everywhere(tasks, tmp_path):
    """The line that the last step of a set-up adds, run in an environment of its own."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tasks.VENV)], check=True)
    (tasks.ROOT / "notebooks" / "course").mkdir(parents=True)
    (tasks.ROOT / "notebooks" / "course" / "__init__.py").write_text("PLACE = 'here'\n")
    *_, (_, command) = tasks.install_commands(tasks.venv_python(), "default")
    subprocess.run(command, check=True)
    done = subprocess.run(
        [str(tasks.venv_python()), "-c", "import course; print(course.PLACE)"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.stdout == "here\n", done.stderr


def test_interrupted_set_up_is_redone_with_the_same_torch(tasks, steps, monkeypatch, capsys):
    def interrupted(command, failure):
        steps.append(command)
        if "venv" in command:
            tasks.venv_python().parent.mkdir(parents=True)
            tasks.venv_python().touch()
        else:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(tasks, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            tasks.set_up("cpu")
    del steps[:]
    tasks.set_up()
    assert "interrupted" in capsys.readouterr().out
    assert kinds(steps) == ["venv", "wheels", "packages", "course"]


def test_changed_lock_installs_into_the_same_environment(tasks, steps):
    tasks.set_up()
    with (tasks.ROOT / "constraints.txt").open("a") as lock:
        lock.write("# moved\n")
    tasks.set_up()
    assert kinds(steps) == ["venv", "packages", "course", "packages", "course"]


def test_line_ends_of_a_checkout_do_not_count_as_a_change(tasks):
    lock = tasks.ROOT / "constraints.txt"
    before = tasks.wanted_stamp(sys.executable, "default")
    lock.write_bytes(lock.read_bytes().replace(b"\n", b"\r\n"))
    assert tasks.wanted_stamp(sys.executable, "default") == before


@pytest.mark.parametrize("change", ["torch", "moved", "python"])
def test_environment_that_no_longer_fits_is_made_anew(tasks, steps, change, monkeypatch):
    tasks.set_up()
    if change == "moved":
        tasks.write_stamp({**tasks.read_stamp(), "root": "elsewhere"}, "complete")
    if change == "python":
        monkeypatch.setattr(tasks, "python_version", lambda python: "3.13.99")
    del steps[:]
    tasks.set_up("cpu" if change == "torch" else None)
    assert "venv" in steps[0]


def test_choice_of_torch_stands_until_another_is_made(tasks, steps):
    tasks.set_up("cpu")
    del steps[:]
    tasks.set_up()
    assert steps == []
    tasks.set_up("default")
    assert kinds(steps) == ["venv", "packages", "course"]


def test_unknown_torch_names_the_choices(tasks, steps, capsys):
    assert tasks.main(["lab", "--torch", "rocm"]) == 1
    assert "must be one of default, cpu; got 'rocm'" in capsys.readouterr().err
    assert steps == []


@pytest.mark.parametrize("driver", [True, False])
def test_cpu_wheels_are_mentioned_where_there_is_no_driver(tasks, steps, driver, monkeypatch, capsys):
    monkeypatch.setattr(tasks, "has_nvidia_driver", lambda: driver)
    monkeypatch.setattr(sys, "platform", "linux")
    tasks.set_up()
    lines = [line for line in capsys.readouterr().out.splitlines() if "TORCH=cpu" in line]
    assert len(lines) == (0 if driver else 1)


@pytest.mark.parametrize(("free", "torch", "warns"), [(5.7e9, None, True), (5.7e9, "cpu", False), (50e9, None, False)])
def test_a_disk_that_is_nearly_full_is_mentioned(tasks, steps, free, torch, warns, monkeypatch, capsys):
    monkeypatch.setattr(tasks.shutil, "disk_usage", lambda path: types.SimpleNamespace(free=free))
    tasks.set_up(torch)
    assert ("this disk has 5.7 GB left, and the set-up takes up to 10" in capsys.readouterr().out) == warns


def test_old_python_is_one_clear_line(tasks, monkeypatch, capsys):
    monkeypatch.setattr(sys, "version_info", (3, 9, 1))
    monkeypatch.setattr(tasks.shutil, "which", lambda name: None)
    assert tasks.main(["test"]) == 1
    assert (
        capsys.readouterr()
        .err.strip()
        .endswith("Python 3.11, 3.12 or 3.13 is needed: this one is 3.9.1, and PATH has none of the three")
    )


def test_old_python_looks_for_a_newer_one(tasks, monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 1))
    monkeypatch.setattr(tasks.shutil, "which", lambda name: "/opt/python3.12" if name == "python3.12" else None)
    assert tasks.find_python() == "/opt/python3.12"


def test_failing_step_is_an_error_that_says_what_to_do(tasks):
    with pytest.raises(tasks.TaskError, match="do this"):
        tasks.run([sys.executable, "-c", "raise SystemExit(3)"], "do this")


ALL = ["notebooks", "notebooks/course/tests", "notebooks/posts/verdicts", "tests"]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ([], {".": ["--nbval", *ALL], "packages/vgpu": [], "packages/multigpu": []}),
        (
            ["-k", "tests"],
            {
                ".": ["--nbval", *ALL, "-k", "tests"],
                "packages/vgpu": ["-k", "tests"],
                "packages/multigpu": ["-k", "tests"],
            },
        ),
        (["tests/test_a.py::test_x", "-x"], {".": ["--nbval", "tests/test_a.py::test_x", "-x"]}),
        (["packages/vgpu/tests/test_b.py"], {"packages/vgpu": ["tests/test_b.py"]}),
    ],
)
def test_a_test_run_is_three_sessions_unless_a_path_is_named(tasks, args, expected):
    for file in ("tests/test_a.py", "packages/vgpu/tests/test_b.py"):
        (tasks.ROOT / file).parent.mkdir(parents=True, exist_ok=True)
        (tasks.ROOT / file).touch()
    sessions = {folder.relative_to(tasks.ROOT).as_posix(): words for folder, words in tasks.sessions(args)}
    assert list(sessions.items()) == list(expected.items())


@pytest.mark.parametrize("exists", [True, False])
def test_lab_opens_the_first_notebook_whatever_the_doctor_says(tasks, monkeypatch, capsys, exists):
    if exists:
        (tasks.ROOT / "notebooks").mkdir()
        (tasks.ROOT / "notebooks" / "00_start_here.ipynb").touch()
    ran = record_runs(tasks, monkeypatch, [1, 0])  # the doctor fails, trusting works
    started = []

    class Server:
        def __init__(self, command, cwd, env):
            started.append(command)
            assert Path(env["JUPYTER_CONFIG_PATH"], "labconfig", "default_setting_overrides.json").exists()
            self.answers = iter([KeyboardInterrupt, 0])

        def wait(self):
            answer = next(self.answers)
            if answer is KeyboardInterrupt:
                raise KeyboardInterrupt  # JupyterLab asks whether it should stop, and must not be left behind
            return answer

    monkeypatch.setattr(tasks.subprocess, "Popen", Server)
    assert tasks.lab(Path("python"), ["--no-browser"]) == 0
    (command,) = started
    page = "/lab/tree/notebooks/00_start_here.ipynb" if exists else "/lab"
    assert f"--LabApp.default_url={page}" in command and command[-1] == "--no-browser"
    trusted = [command for command in ran if "trust" in command]
    assert [command[-1].endswith("00_start_here.ipynb") for command in trusted] == [True] * exists
    assert not [word for word in command if "token" in word]
    (manager,) = [word.partition("=")[2] for word in command if "contents_manager_class" in word]
    module, _, name = manager.rpartition(".")
    assert hasattr(importlib.import_module(module), name)
    assert "the doctor found" in capsys.readouterr().out


def test_lint_runs_every_tool_and_fails_when_one_does(tasks, monkeypatch):
    ran = record_runs(tasks, monkeypatch, [0, 1, 0])
    assert tasks.lint(Path("python"), []) == 1
    assert len(ran) == 3


def test_bench_runs_all_and_reports_the_failing_one(tasks):
    folder = tasks.ROOT / "benchmarks"
    folder.mkdir()
    (folder / "bench_a.py").write_text("raise SystemExit(2)")
    (folder / "bench_b.py").write_text(f"open({str(tasks.ROOT / 'ran')!r}, 'w').close()")
    assert tasks.bench(Path(sys.executable), []) == 2
    assert (tasks.ROOT / "ran").exists()


def test_clean_keeps_what_a_reader_made(tasks):
    keep = ["runs/first/checkpoint.pt", "runs/first/__pycache__/x", "data/mine/build/x", "notebooks/02_scatter.ipynb"]
    remove = [".venv/x", "frcnn_lite/__pycache__/x", ".ruff_cache/x", "notebooks/.ipynb_checkpoints/x", "build/x"]
    for name in keep + remove:
        (tasks.ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (tasks.ROOT / name).touch()
    assert tasks.main(["clean"]) == 0
    assert all((tasks.ROOT / name).exists() for name in keep)
    assert not any((tasks.ROOT / name).exists() for name in remove)


def test_alone_it_lists_its_commands(tasks, capsys):
    assert tasks.main([]) == 2
    said = capsys.readouterr().err
    assert all(f"\n    {name} " in said for name in (*tasks.COMMANDS, "clean")) and "--torch" in said
    assert "(default: " in " ".join(said.partition("options:")[2].split())


def test_makefile_reaches_every_command():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (listed,) = (line for line in makefile.splitlines() if line.startswith("COMMANDS = "))
    spec = importlib.util.spec_from_file_location("tasks_listed", ROOT / "tasks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert set(listed.removeprefix("COMMANDS = ").split()) == {*module.COMMANDS, "clean"}


def dummy_package(folder: Path, name: str, version: str) -> None:
    """A wheel of nothing, in the layout of a package index."""
    safe = name.replace("-", "_")
    home = folder / name
    home.mkdir(parents=True)
    info = f"{safe}-{version}.dist-info"
    with zipfile.ZipFile(home / f"{safe}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{safe}/__init__.py", f"__version__ = {version!r}\n")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    (page,) = home.iterdir()
    (home / "index.html").write_text(f'<a href="{page.name}">{page.name}</a>')


def test_cpu_wheels_satisfy_the_lock_and_stay(tasks, tmp_path, monkeypatch):
    """The whole of TORCH=cpu against an index on disk: the +cpu builds come first and the second step keeps them."""
    index = tmp_path / "index"
    lock = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lock if line.startswith(("torch==", "torchvision==")))
    for name, version in pins.items():
        dummy_package(index, name, f"{version}+cpu")
    monkeypatch.setattr(tasks, "CPU_INDEX", index.as_uri())
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    commands = tasks.install_commands

    def without_the_network(python, torch):
        wheels, (line, project), _ = commands(python, torch)
        return [
            wheels,
            (line, [*project[: project.index("--editable")], "--no-index", "torch>=2.11", "torchvision>=0.26"]),
        ]

    monkeypatch.setattr(tasks, "install_commands", without_the_network)
    python = tasks.set_up("cpu")
    code = "import torch, torchvision; print(torch.__version__, torchvision.__version__)"
    printed = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert printed.split() == [f"{pins['torch']}+cpu", f"{pins['torchvision']}+cpu"]
