"""tasks.py: what would be installed and run, and what happens to an environment that no longer fits."""

import hashlib
import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
import types
from pathlib import Path

import pytest
import yaml

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
def project(tasks, monkeypatch):
    """That project, with an installation that takes no network: it notes in the environment that it ran.

    The environments are real ones, without pip, which takes seconds to get.
    """

    def install(python, torch):
        note, fails = str(tasks.VENV / "installed"), (tasks.ROOT / "broken").exists()
        code = f"open({note!r}, 'a').write('{torch} '); raise SystemExit({fails:d})"
        return [("installing", [str(python), "-c", code])]

    real = tasks.run
    monkeypatch.setattr(tasks, "install_commands", install)
    monkeypatch.setattr(
        tasks, "run", lambda command, failure: real([*command, *["--without-pip"] * ("venv" in command)], failure)
    )
    return tasks


def installed(tasks):
    """What the environment says was installed into it, in order; an environment made anew knows the last alone."""
    return (tasks.VENV / "installed").read_text().split()


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


def test_a_second_set_up_changes_nothing(project):
    project.set_up()
    before = sorted((path, path.stat().st_mtime_ns) for path in project.VENV.rglob("*"))
    assert project.set_up() == project.venv_python()
    assert sorted((path, path.stat().st_mtime_ns) for path in project.VENV.rglob("*")) == before


def test_the_course_is_imported_from_everywhere(tasks, tmp_path):
    """The line that the last step of a set-up adds, run in an environment of its own."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tasks.VENV)], check=True)
    (tasks.ROOT / "notebooks" / "course").mkdir(parents=True)
    (tasks.ROOT / "notebooks" / "course" / "__init__.py").write_text("PLACE = 'here'\n")
    *_, (_, command) = tasks.install_commands(tasks.venv_python(), "default")
    subprocess.run(command, check=True)
    done = subprocess.run(
        [str(tasks.venv_python()), "-E", "-c", "import course; print(course.PLACE)"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.stdout == "here\n", done.stderr


def test_an_interrupted_set_up_is_redone_with_the_same_torch(project, capsys):
    (project.ROOT / "broken").touch()
    with pytest.raises(project.TaskError, match="the next run of this command starts the set-up again"):
        project.set_up("cpu")
    (project.VENV / "half").touch()
    (project.ROOT / "broken").unlink()
    project.set_up()
    assert "removing .venv (an earlier set-up was interrupted)" in capsys.readouterr().out
    assert installed(project) == ["cpu"] and not (project.VENV / "half").exists()


def test_a_changed_lock_is_installed_into_the_same_environment(project):
    project.set_up()
    with (project.ROOT / "constraints.txt").open("a") as lock:
        lock.write("# moved\n")
    project.set_up()
    assert installed(project) == ["default", "default"]


def test_line_ends_of_a_checkout_do_not_count_as_a_change(tasks):
    lock = tasks.ROOT / "constraints.txt"
    before = tasks.wanted_stamp(sys.executable, "default")
    lock.write_bytes(lock.read_bytes().replace(b"\n", b"\r\n"))
    assert tasks.wanted_stamp(sys.executable, "default") == before


@pytest.mark.parametrize("change", ["torch", "moved", "python"])
def test_an_environment_that_no_longer_fits_is_made_anew(project, change, monkeypatch, capsys):
    project.set_up()
    if change == "moved":
        project.write_stamp({**project.read_stamp(), "root": "elsewhere"}, "complete")
    if change == "python":
        monkeypatch.setattr(project, "python_version", lambda python: "3.13.99")
    project.set_up("cpu" if change == "torch" else None)
    assert "removing .venv (it no longer fits)" in capsys.readouterr().out
    assert installed(project) == ["cpu" if change == "torch" else "default"]


def test_the_choice_of_torch_stands_until_a_different_one_is_made(project):
    project.set_up("cpu")
    project.set_up()
    assert installed(project) == ["cpu"]
    project.set_up("default")
    assert installed(project) == ["default"]


def test_unknown_torch_names_the_choices(project, capsys):
    assert project.main(["lab", "--torch", "rocm"]) == 1
    assert "must be one of default, cpu; got 'rocm'" in capsys.readouterr().err
    assert not project.VENV.exists()


@pytest.mark.parametrize("driver", [True, False])
def test_cpu_wheels_are_mentioned_where_there_is_no_driver(project, driver, monkeypatch, capsys):
    monkeypatch.setattr(project, "has_nvidia_driver", lambda: driver)
    monkeypatch.setattr(sys, "platform", "linux")
    project.set_up()
    lines = [line for line in capsys.readouterr().out.splitlines() if "TORCH=cpu" in line]
    assert len(lines) == (0 if driver else 1)


@pytest.mark.parametrize(("free", "torch", "warns"), [(5.7e9, None, True), (5.7e9, "cpu", False), (50e9, None, False)])
def test_a_disk_that_is_nearly_full_is_mentioned(project, free, torch, warns, monkeypatch, capsys):
    monkeypatch.setattr(project.shutil, "disk_usage", lambda path: types.SimpleNamespace(free=free))
    project.set_up(torch)
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


ALL = ["notebooks", "notebooks/course", "tests", "notebooks/posts/verdicts"]
QUICK = ["-m", "not exhaustive and not long"]
NOT_LONG = ["-m", "not long"]
NO_NBVAL = ["-pno:nbval"]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ([], {".": [*ALL, *QUICK], "packages/vgpu": QUICK, "packages/multigpu": QUICK}),
        (["--all"], {".": [*ALL, *NOT_LONG], "packages/vgpu": NOT_LONG, "packages/multigpu": NOT_LONG}),
        (["--long"], {".": [*ALL, "-m", "long"], "packages/vgpu": ["-m", "long"], "packages/multigpu": ["-m", "long"]}),
        (
            ["--all", "-k", "tests"],
            {
                ".": [*ALL, *NOT_LONG, "-k", "tests"],
                "packages/vgpu": [*NOT_LONG, "-k", "tests"],
                "packages/multigpu": [*NOT_LONG, "-k", "tests"],
            },
        ),
        (["tests/test_a.py::test_x", "-x"], {".": ["tests/test_a.py::test_x", "-x"]}),
        (["packages/vgpu/tests/test_b.py"], {"packages/vgpu": ["tests/test_b.py"]}),
        (["--all", "packages/vgpu/tests/test_b.py"], {"packages/vgpu": ["tests/test_b.py", *NOT_LONG]}),
    ],
)
def test_a_test_run_is_three_sessions_unless_a_path_is_named(tasks, args, expected):
    for file in ("tests/test_a.py", "packages/vgpu/tests/test_b.py"):
        (tasks.ROOT / file).parent.mkdir(parents=True, exist_ok=True)
        (tasks.ROOT / file).touch()
    sessions = {folder.relative_to(tasks.ROOT).as_posix(): words for folder, words in tasks.sessions(args)}
    begin = {folder: ["--nbval"] if folder == "." else NO_NBVAL for folder in expected}
    assert list(sessions.items()) == [(folder, begin[folder] + words) for folder, words in expected.items()]


@pytest.mark.parametrize("torch", ["default", "cpu"])
def test_the_oldest_torch_has_an_environment_of_its_own_and_runs_the_notebooks_and_vgpus_tests(
    tasks, torch, monkeypatch
):
    steps = []
    monkeypatch.setattr(tasks, "run", lambda command, failure: steps.append(command))
    monkeypatch.setattr(tasks, "test", lambda python, args: (python, tasks.sessions(args)))
    for folder in ("notebooks", "packages/vgpu/tests", ".venv"):
        (tasks.ROOT / folder).mkdir(parents=True, exist_ok=True)
    tasks.write_stamp({"torch": torch}, "complete")
    environment = tasks.VENV / "oldest"
    for runs in range(2):
        python, sessions = tasks.COMMANDS["oldest"](tasks.venv_python(), [])
        assert [environment.as_posix() in " ".join(step) for step in steps] == [True] * len(steps)
        assert sum("venv" in step for step in steps) == 1 - runs  # the environment is made once
        python.parent.mkdir(parents=True, exist_ok=True)
        python.touch()
        assert any(tasks.CPU_INDEX in step for step in steps) == (torch == "cpu")
        steps.clear()
    assert python == tasks.venv_python(environment)
    assert dict(sessions) == {
        tasks.ROOT: ["--nbval", "notebooks/", *QUICK],
        tasks.ROOT / "packages" / "vgpu": [*NO_NBVAL, "tests", *QUICK],
    }


def test_the_lock_of_the_oldest_torch_is_what_pyproject_allows_at_least(tasks):
    lock = (ROOT / "constraints.txt").read_text(encoding="utf-8").split("\n")
    oldest = tasks.oldest_lock().split("\n")
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    at_least = [line.replace(">=", "==") + ".*" for line in wanted if line.startswith("torch")]
    assert sorted(set(oldest) - set(lock)) == sorted(at_least)
    assert {line.split("==")[0] for line in set(lock) - set(oldest)} == {"torch", "torchvision", "setuptools"}


def workflow(name):
    return yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))


def test_the_workflow_runs_the_oldest_torch():
    steps = workflow("test.yml")["jobs"]["oldest"]["steps"]
    assert "python tasks.py oldest --torch cpu" in [step.get("run") for step in steps]


def test_what_takes_long_runs_by_itself_once_a_week():
    long = workflow("long.yml")
    (when,) = long[True]["schedule"]  # YAML reads the key `on` as True
    assert re.fullmatch(r"\d+ \d+ \* \* [0-6]", when["cron"])
    assert "python tasks.py long --torch cpu" in [step.get("run") for step in long["jobs"]["long"]["steps"]]


@pytest.mark.parametrize("given", [[], ["--pytorch", "P", "--suites", "S", "--for", "20m"]])
def test_what_takes_long_runs_to_its_end_and_fails_when_a_part_of_it_fails(tasks, monkeypatch, given):
    ran = []

    def instead_of(name, code):
        return lambda python, args: ran.append((name, *args)) or code

    for name, code in {"test": 0, "oracle": 2, "differential": 0, "oldest": 1, "third_party": 0}.items():
        monkeypatch.setattr(tasks, name, instead_of(name, code))
    assert tasks.COMMANDS["long"](Path("python"), given) == 2
    lasts, pytorch, suites = (
        ("20m", ["--pytorch", "P"], [("third_party", "--suites", "S")]) if given else ("60m", [], [])
    )
    expected = [("test", "--long"), ("oracle", *pytorch), ("differential", "--for", lasts), ("oldest",), *suites]
    assert ran == expected


def test_random_programs_run_beside_the_cpu(tasks, monkeypatch):
    monkeypatch.setattr(tasks, "ROOT", ROOT)
    assert tasks.differential(Path(sys.executable), ["--count", "1"]) == 0


def test_the_workflow_tests_the_library_the_course_and_each_package_on_macos_and_windows(tasks, monkeypatch):
    monkeypatch.setattr(tasks, "ROOT", ROOT)
    steps = [step["run"].split() for step in workflow("test.yml")["jobs"]["elsewhere"]["steps"] if "run" in step]
    commands = ["python", "tasks.py", "test", "--torch", "cpu"]
    assert all(words[: len(commands)] == commands for words in steps)
    sessions = {
        folder.relative_to(ROOT).as_posix(): [word.rstrip("/") for word in words if not word.startswith("-")]
        for step in steps
        for folder, words in tasks.sessions(step[len(commands) :])
    }
    course = ["tests", "notebooks/course"]
    assert sessions == {".": course, "packages/vgpu": ["tests"], "packages/multigpu": ["tests"]}


@pytest.mark.parametrize("folders", [["notebooks", "my_notebooks"], ["notebooks"], []])
def test_lab_opens_the_readers_copy_and_keeps_what_is_stored(tasks, folders):
    for folder in folders:
        (tasks.ROOT / folder).mkdir()
        (tasks.ROOT / folder / "00_start_here.ipynb").touch()
    command = tasks.lab_command(Path("python"), tasks.ROOT)
    page = f"/lab/tree/{folders[-1]}/00_start_here.ipynb" if folders else "/lab"
    assert f"--LabApp.default_url={page}" in command and not [word for word in command if "token" in word]
    (manager,) = [word.partition("=")[2] for word in command if "contents_manager_class" in word]
    module, _, name = manager.rpartition(".")
    assert hasattr(importlib.import_module(module), name)
    settings = Path(tasks.lab_environment()["JUPYTER_CONFIG_PATH"].split(os.pathsep)[-1])
    assert (settings / "labconfig" / "default_setting_overrides.json").exists()


def test_lab_opens_the_notebook_that_the_reader_wrote_to_last(tasks):
    own = tasks.ROOT / "my_notebooks"
    own.mkdir()
    copied = {}
    for age, name in enumerate(["00_start_here", "01_scatter", "02_calls"]):
        file = own / f"{name}.ipynb"
        file.write_text(name)
        copied[file.name] = hashlib.sha256(file.read_bytes()).hexdigest()
        os.utime(file, (1000 - age, 1000 - age))
    record = own / ".copied.json"
    record.write_text(json.dumps(copied))

    def opened() -> str:
        (page,) = [word for word in tasks.lab_command(Path("python"), tasks.ROOT) if "default_url" in word]
        return page.rpartition("/")[2]

    assert opened() == "00_start_here.ipynb"  # nothing was written yet
    for name, time in {"01_scatter.ipynb": 2000, "02_calls.ipynb": 3000}.items():
        (own / name).write_text("an answer")
        os.utime(own / name, (time, time))
        assert opened() == name
    for damaged in ("[]", "{"):
        record.write_text(damaged)
        assert opened() == "00_start_here.ipynb"


@pytest.mark.parametrize("user", [0, 1000])
def test_lab_starts_for_root_too_and_says_so(tasks, monkeypatch, capfd, user):
    """With a JupyterLab in the project's folder, where `python -m` looks first."""
    monkeypatch.setattr(os, "geteuid", lambda: user, raising=False)
    (tasks.ROOT / "jupyterlab.py").write_text("import sys\nprint('allowed', '--allow-root' in sys.argv)\n")
    assert tasks.lab(Path(sys.executable), []) == 0
    said = capfd.readouterr().out
    assert f"allowed {user == 0}\n" in said and ("you are root" in said) is (user == 0)


def test_lint_lets_every_tool_report_and_fails_when_one_does(tasks, capfd):
    """With tools of the same names that stand in the project's folder, where `python -m` looks first."""
    (tasks.ROOT / "ruff.py").write_text("import sys\nprint('ruff', sys.argv[1])\nsys.exit(sys.argv[1] == 'format')\n")
    (tasks.ROOT / "mypy.py").write_text("print('mypy')\n")
    assert tasks.lint(Path(sys.executable), []) == 1
    assert capfd.readouterr().out.split("\n")[:3] == ["ruff format", "ruff check", "mypy"]


def test_bench_runs_all_and_reports_the_failing_one(tasks):
    folder = tasks.ROOT / "benchmarks"
    folder.mkdir()
    (folder / "bench_a.py").write_text("raise SystemExit(2)")
    (folder / "bench_b.py").write_text(f"open({str(tasks.ROOT / 'ran')!r}, 'w').close()")
    assert tasks.bench(Path(sys.executable), []) == 2
    assert (tasks.ROOT / "ran").exists()


def test_clean_keeps_what_a_reader_made(tasks):
    keep = [
        "my_notebooks/01.ipynb",
        "runs/first/checkpoint.pt",
        "runs/first/__pycache__/x",
        "data/mine/build/x",
        "notebooks/02_scatter.ipynb",
    ]
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


@pytest.mark.exhaustive
def test_the_last_that_a_run_of_pytest_prints_is_its_result():
    """Triton, which torch.compile imports, reports at the end what the interpreter did not free."""
    test = "tests/export/test_weights.py::test_one_layer_that_was_compiled"
    ran = subprocess.run([sys.executable, "-m", "pytest", "-q", test], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0 and "1 passed" in ran.stdout.splitlines()[-1], ran.stdout
    assert "leaked" not in ran.stderr
