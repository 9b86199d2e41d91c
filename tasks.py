"""Every command of the project, with nothing installed but Python: `python tasks.py COMMAND [--torch cpu] [args...]`.

    lab         set up, run the doctor, open JupyterLab on your own copies      (args go to JupyterLab)
                of the notebooks, in my_notebooks/
    fresh       new copies of the notebooks; what you have written is kept      (NN...: of these alone)
    test        set up, run the unit tests and every notebook under nbval       (--all: exhaustive tests, too;
                                                                                --long: those that take long alone;
                                                                                other args go to pytest)
    long        what takes hours: the long tests, PyTorch's own tables,         (--pytorch DIR, --suites DIR: see
                random programs for an hour, the oldest PyTorch                 below; --for 20m: fewer programs)
    oldest      run the notebooks and vgpu's tests on the oldest PyTorch        (args as for test)
                that is supported, in .venv/oldest
    notebooks   run the notebooks and store their outputs in place              (NN_topic.ipynb..., --check)
    bench       run every benchmark
    oracle      check virtual GPUs against all of PyTorch's own tables          (--pytorch DIR: and its test files)
    third-party run other projects' own tests on virtual GPUs                   (--suites DIR: your checkouts of them)
    site        build the site of everything in build/site                      (--repo owner/name: with links to it)
    links       links to Colab and others, the address in README and CITATION   (--repo owner/name; without it they go)
    lint        check format, style and types
    clean       remove the environment and the caches, never runs/ or data/

Every command but `clean` first sees to it that `.venv` is complete, which takes no time when it is.
The Makefile is a thin face of this file, for those who have make.
"""

from __future__ import annotations  # this file must at least start on an old Python, to say so

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
STAMP = VENV / "set-up.json"
PYTHONS = ((3, 13), (3, 12), (3, 11))  # in the order of preference
NO_TESTS = 5  # pytest's exit code
# Which tests a run is of, as pytest's -m says it: without one of these options, the quick ones.
QUICK = "not exhaustive and not long"
MARKED = {"--all": "not long", "--long": "long"}
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
TORCH_CHOICES = ("default", "cpu")
GIGABYTES = {"default": 10 if sys.platform == "linux" else 3, "cpu": 3}  # what a set-up takes on disk while it unpacks
CACHES = ("__pycache__", ".pytest_cache", ".ruff_cache", ".mypy_cache", ".hypothesis", ".ipynb_checkpoints")
BUILDS = ("build", "dist", "frcnn_lite.egg-info")
# What a set-up installs, in this order, each with the extras that the notebooks and the tests need.
PACKAGES = ("packages/vgpu[test]", "packages/multigpu[test]", ".[course,dev]")
# The tests of the course and of the verdicts stand among the notebooks; a package is tested by its own configuration.
MAIN_TESTS = ("notebooks", "notebooks/course", "tests", "notebooks/posts/verdicts")
TESTED_ALONE = ("packages/vgpu", "packages/multigpu")
# What runs on the oldest PyTorch: what shows, with outputs and with operators, that a version differs.
ON_OLDEST = ("-m", QUICK, "notebooks/", "packages/vgpu/tests")
# A notebook that somebody has copied elsewhere still finds the course.
COURSE_ON_PATH = """
import pathlib, sys, sysconfig
pathlib.Path(sysconfig.get_path("purelib"), "frcnn_lite_course.pth").write_text(sys.argv[1] + "\\n", encoding="utf-8")
"""
READERS_OWN = ("runs", "data", "my_notebooks", ".git")


class TaskError(Exception):
    """A failure that one line explains."""


# ---------------------------------------------------------------- the environment


def venv_python(venv: Path | None = None) -> Path:
    """The interpreter of an environment, by default of `.venv`, wherever this system puts it."""
    return (venv or VENV) / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def find_python() -> str:
    """A supported interpreter: the one running this file if it will do, otherwise one on PATH."""
    if sys.version_info[:2] in PYTHONS:
        # Inside a virtual environment (perhaps the very one about to be replaced) its base outlives it.
        return getattr(sys, "_base_executable", None) or sys.executable
    for major, minor in PYTHONS:
        found = shutil.which(f"python{major}.{minor}")
        if found:
            return found
        if os.name == "nt" and shutil.which("py"):
            asked = subprocess.run(
                ["py", f"-{major}.{minor}", "-c", "import sys; print(sys.executable)"], capture_output=True, text=True
            )
            if asked.returncode == 0:
                return asked.stdout.strip()
    running = ".".join(map(str, sys.version_info[:3]))
    raise TaskError(f"Python 3.11, 3.12 or 3.13 is needed: this one is {running}, and PATH has none of the three")


def python_version(python: str) -> str:
    """The version of an interpreter, as in 3.12.4."""
    code = "import platform; print(platform.python_version())"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def has_nvidia_driver() -> bool:
    """Whether this machine can run the CUDA build at all; looks at the disk only."""
    return Path("/proc/driver/nvidia").exists() or shutil.which("nvidia-smi") is not None


def wanted_stamp(python: str, torch: str) -> dict[str, str]:
    """What the environment is a function of; a difference in any entry means work to do."""
    projects = [ROOT / name.partition("[")[0] / "pyproject.toml" for name in PACKAGES]
    sources = b"".join(path.read_bytes() for path in (*projects, ROOT / "constraints.txt"))
    return {
        "root": str(ROOT),  # an environment does not survive being moved
        "python": python_version(python),
        "torch": torch,
        "requirements": hashlib.sha256(sources.replace(b"\r\n", b"\n")).hexdigest(),
    }


def read_stamp() -> dict[str, str]:
    """The stamp of the last set-up, complete or not; empty when there is none to read."""
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def write_stamp(stamp: dict[str, str], state: str) -> None:
    """Record how far a set-up has come: an interrupted one leaves "started" behind."""
    STAMP.write_text(json.dumps({**stamp, "state": state}, indent=1) + "\n", encoding="utf-8")


def install_commands(python: Path, torch: str, lock: Path | None = None) -> list[tuple[str, list[str]]]:
    """What to install, in order: a line for the reader and the command. `lock` is in place of constraints.txt."""
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    locked = ["--constraint", str(lock or ROOT / "constraints.txt")]
    project = [*pip, *locked]
    for name in PACKAGES:
        folder, _, extras = name.partition("[")
        project += ["--editable", f"{(ROOT / folder).resolve()}[{extras}"]
    course = [str(python), "-c", COURSE_ON_PATH, str(ROOT / "notebooks")]
    path = ("letting every folder import the course of notebooks/", course)
    if torch == "cpu":
        # PyTorch's index serves torch but not our locked versions of what torch needs: hence --no-deps, and the rest
        # from PyPI. A lock on 2.15.0 admits the 2.15.0+cpu it finds installed.
        wheels = [*pip, *locked, "--no-deps", "--index-url", CPU_INDEX, "torch", "torchvision"]
        return [
            ("installing torch and torchvision, CPU wheels from PyTorch's own index", wheels),
            ("installing everything else", project),
            path,
        ]
    return [("installing torch, JupyterLab and the rest (minutes on the first run)", project), path]


def set_up(torch: str | None = None) -> Path:
    """Make `.venv` what pyproject.toml, constraints.txt and the choice of torch ask for, and return its interpreter.

    Without a choice, the one of the last set-up stands. An interrupted set-up is redone.
    """
    if torch is not None and torch not in TORCH_CHOICES:
        raise TaskError(f"--torch (TORCH=) must be one of {', '.join(TORCH_CHOICES)}; got {torch!r}")
    python = find_python()
    before = read_stamp()
    torch = torch or before.get("torch", "default")
    wanted = wanted_stamp(python, torch)
    inside = venv_python()
    if before == {**wanted, "state": "complete"} and inside.exists():
        return inside

    keep = {**before, "requirements": ""} == {**wanted, "requirements": "", "state": "complete"} and inside.exists()
    if not keep:
        if VENV.exists():
            why = "an earlier set-up was interrupted" if before.get("state") != "complete" else "it no longer fits"
            say(f"removing .venv ({why})")
            shutil.rmtree(VENV)
        if torch == "default" and sys.platform == "linux" and not has_nvidia_driver():
            say(
                "no NVIDIA driver here: `make lab TORCH=cpu` takes PyTorch's CPU wheels (1 GB) instead of CUDA (5.8 GB)"
            )
        free = shutil.disk_usage(ROOT).free / 1e9
        if free < GIGABYTES[torch]:
            say(f"warning: this disk has {free:.1f} GB left, and the set-up takes up to {GIGABYTES[torch]}")
        say(f"creating .venv with Python {wanted['python']}")
        run([python, "-m", "venv", str(VENV)], "cannot create .venv; on Debian and Ubuntu: apt install python3-venv")
    write_stamp(wanted, "started")
    for line, command in install_commands(inside, torch):
        say(line)
        run(command, "this step failed for the reason above; the next run of this command starts the set-up again")
    write_stamp(wanted, "complete")
    say("set-up complete")
    return inside


# ---------------------------------------------------------------- the commands


def lab(python: Path, args: list[str]) -> int:
    """Run the doctor, then JupyterLab on the reader's copies, with the whole project in its file browser."""
    if subprocess.run([str(python), "-m", "multigpu", "doctor"], cwd=ROOT).returncode:
        say("the doctor found what is listed above; JupyterLab opens all the same")
    trust_notebooks(python)
    say("my_notebooks/ holds copies of the series: write into them as you like (make fresh starts again)")
    if subprocess.run([str(python), "-m", "course", "my_notebooks"], cwd=ROOT).returncode:
        say("the copies could not be made, for the reason above; JupyterLab opens the series itself")
    if is_root():
        say("you are root, so JupyterLab is started with --allow-root; it listens on 127.0.0.1 and asks for its token")
    server = subprocess.Popen([*lab_command(python, ROOT), *args], cwd=ROOT, env=lab_environment())
    while True:
        try:
            return server.wait()
        except KeyboardInterrupt:
            continue  # JupyterLab got it too, and asks whether it should stop


def last_written(own: Path) -> list[Path]:
    """The reader's notebooks that differ from what was copied, the newest first; `course.tools.my_notebooks` copies."""
    try:
        copied = json.loads((own / ".copied.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    digests = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in own.glob("*.ipynb")}
    written = [path for path, digest in digests.items() if isinstance(copied, dict) and copied.get(path.name) != digest]
    return sorted(written, key=lambda path: path.stat().st_mtime, reverse=True)


def lab_command(python: Path, root: Path) -> list[str]:
    """JupyterLab on a project, at the notebook that the reader wrote to last, or else at the first one.

    It asks nothing, tells nobody and leaves what is read as it was: without the manager of files, reading a notebook
    and saving it would change its stored outputs.
    """
    first = (root / folder / "00_start_here.ipynb" for folder in ("my_notebooks", "notebooks"))
    found = next((path for path in [*last_written(root / "my_notebooks"), *first] if path.exists()), None)
    page = f"/lab/tree/{found.relative_to(root).as_posix()}" if found else "/lab"
    return [
        *(str(python), "-m", "jupyterlab", f"--ServerApp.root_dir={root}", f"--LabApp.default_url={page}"),
        "--ServerApp.contents_manager_class=course.tools.lab.Contents",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",  # nobody asked for a request to PyPI
        *(["--allow-root"] if is_root() else []),  # in a container there is often nobody else
    ]


def is_root() -> bool:
    """Whether this is a Unix system's administrator, for whom JupyterLab does not start by itself."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def lab_environment() -> dict[str, str]:
    """This process's environment, and our defaults for JupyterLab's settings: no question about news on top of a page.

    What users have set themselves counts more.
    """
    ours = str(Path(__file__).resolve().parent / "notebooks" / "course" / "jupyter")
    folders = [os.environ.get("JUPYTER_CONFIG_PATH"), ours]
    return {**os.environ, "JUPYTER_CONFIG_PATH": os.pathsep.join(filter(None, folders))}


def trust_notebooks(python: Path) -> None:
    """Let JupyterLab show the stored figures at once: of a notebook it does not trust it shows their text alone.

    Trust goes by content, so an untouched copy is trusted with the notebook that it was made from.
    """
    stored = sorted(map(str, (ROOT / "notebooks").glob("*.ipynb")))
    if stored:
        say("trusting the stored figures of notebooks/")
        subprocess.run([str(python), "-m", "jupyter", "trust", *stored], cwd=ROOT, stdout=subprocess.DEVNULL)


def is_path(arg: str) -> bool:
    """Whether an argument names a file or folder of the project; `-k tests` is a word, `tests/ops` is not."""
    return any(mark in arg for mark in ("/", os.sep, ".py", ".ipynb")) and (ROOT / arg.split("::")[0]).exists()


def sessions(args: list[str]) -> list[tuple[Path, list[str]]]:
    """The pytest sessions of a test run: the folder of each and its arguments. A package has one of its own, so that
    its tests meet its own configuration and nothing of this repository's. Paths in `args` choose the sessions, whole
    unless an option of `MARKED` is there, too. Without either, a run is of the quick tests."""
    paths = [arg for arg in args if is_path(arg)]
    marks = [MARKED[arg] for arg in args if arg in MARKED] or ([] if paths else [QUICK])
    options = [word for mark in marks for word in ("-m", mark)]
    options += [arg for arg in args if arg not in (*paths, *MARKED)]
    chosen: list[tuple[Path, list[str]]] = []
    for package in TESTED_ALONE:
        inside = [os.path.relpath(path, package) for path in paths if Path(path).as_posix().startswith(package)]
        if inside or not paths:
            # Packages have no notebooks, and nbval takes longer to import than torch.
            chosen.append((ROOT / package, ["-pno:nbval", *inside, *options]))
    others = [path for path in paths if not Path(path).as_posix().startswith(TESTED_ALONE)]
    if others or not paths:
        # Notebooks first, since they take longest, but for the long files that conftest.py puts before them.
        chosen.insert(0, (ROOT, ["--nbval", *(others or MAIN_TESTS), *options]))
    return chosen


def test(python: Path, args: list[str]) -> int:
    """Notebooks and tests, in parallel by file, and beside them those of each package; paths in `args` choose.

    One session alone leaves a core idle at its end, where a worker has a long file to itself.
    """
    cores = os.cpu_count() or 2
    # Twice as many workers as cores: many tests wait, for a browser, a kernel or ranks, and leave their core idle.
    workers = max(4, min(8, 2 * cores))
    # The workers share the cores: without this each of them would start a thread for every core.
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, cores // workers)))
    # In the order of the folders: xdist's own puts files of one long test last, where one worker waits for the other.
    command = [str(python), "-m", "pytest", "--dist", "loadfile", "--no-loadscope-reorder"]
    (folder, arguments), *others = sessions(args)
    with tempfile.TemporaryDirectory() as kept:
        beside = [
            Beside(where, [*command, "-n", str(workers - 2 - place), *words], Path(kept, str(place)))
            for place, (where, words) in enumerate(others)
        ]
        codes = [subprocess.run([*command, "-n", str(workers), *arguments], cwd=folder).returncode]
        codes += [session.report() for session in beside]
    failed = [code for code in codes if code not in (0, NO_TESTS)]
    return max(failed) if failed else min(codes)  # -k may choose from one session alone


class Beside:
    """A test session that runs beside the one on the terminal; `file` keeps what it prints until that has ended."""

    def __init__(self, folder: Path, command: list[str], file: Path) -> None:
        self.folder, self.file = folder, file
        with file.open("wb") as output:
            self.session = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT)

    def report(self) -> int:
        """Wait for its end and print what it has printed; gives its exit code."""
        say(f"tests of {self.folder.relative_to(ROOT).as_posix()}")
        code = self.session.wait()
        print(self.file.read_text(encoding="utf-8", errors="replace"), flush=True)
        return code


def oldest(python: Path, args: list[str]) -> int:
    """The notebooks under nbval, and the tests of vgpu, on the oldest PyTorch, with the build that `.venv` has.

    pip leaves alone what a former run has installed.
    """
    environment, lock = VENV / "oldest", VENV / "oldest.txt"
    lock.write_text(oldest_lock(), encoding="utf-8")
    inside = venv_python(environment)
    if not inside.exists():
        say("creating .venv/oldest")
        run([find_python(), "-m", "venv", "--clear", str(environment)], "cannot create .venv/oldest")
    for line, command in install_commands(inside, read_stamp().get("torch", "default"), lock):
        say(f"{line}, in .venv/oldest")
        run(command, "this step failed for the reason above")
    return test(inside, args or [*ON_OLDEST])


def long(python: Path, args: list[str]) -> int:
    """What takes hours and few changes can break, one after the other; all of it runs, whatever fails."""
    parser = argparse.ArgumentParser(prog="tasks.py long", allow_abbrev=False)
    parser.add_argument("--pytorch", metavar="DIR", help="a checkout of PyTorch, for `oracle`")
    parser.add_argument("--suites", metavar="DIR", help="checkouts of other projects, for `third-party`")
    parser.add_argument("--for", metavar="TIME", dest="lasts", default="60m", help="of random programs (default: 60m)")
    options = parser.parse_args(args)
    codes = [
        test(python, ["--long"]),
        oracle(python, ["--pytorch", options.pytorch] if options.pytorch else []),
        differential(python, ["--for", options.lasts]),
        oldest(python, []),
    ]
    if options.suites:
        codes.append(third_party(python, ["--suites", options.suites]))
    return max(codes)


def differential(python: Path, args: list[str]) -> int:
    """Random programs on virtual GPUs beside the CPU."""
    tools = ROOT / "packages" / "vgpu" / "tools"
    return subprocess.run([str(python), "-m", "differential", *args], cwd=tools).returncode


def oldest_lock() -> str:
    """constraints.txt, with the oldest torch and torchvision that pyproject.toml allows.

    setuptools is left to pip: the version that is locked is newer than an old torch admits.
    """
    asked = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    oldest = dict(re.findall(r'"(torch|torchvision)>=([\d.]+)"', asked))
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if line.partition("==")[0] not in (*oldest, "setuptools")]
    return "\n".join([*kept, *(f"{name}=={version}.*" for name, version in oldest.items()), ""])


def fresh(python: Path, args: list[str]) -> int:
    """Start again with the reader's copies; what was written into them is put aside."""
    return subprocess.run([str(python), "-m", "course", "my_notebooks", "--fresh", *args], cwd=ROOT).returncode


def notebooks(python: Path, args: list[str]) -> int:
    """Run notebooks in reading order and store their outputs."""
    return subprocess.run([str(python), "-m", "course", "store", *args], cwd=ROOT).returncode


def bench(python: Path, args: list[str]) -> int:
    """Run every benchmark, the failing ones not keeping the others from running."""
    scripts = sorted((ROOT / "benchmarks").glob("bench_*.py"))
    if not scripts:
        say("benchmarks/ holds no bench_*.py yet")
    codes = []
    for script in scripts:
        say(f"benchmarks/{script.name}")
        codes.append(subprocess.run([str(python), str(script), *args], cwd=ROOT).returncode)
    return max(codes, default=0)


def oracle(python: Path, args: list[str]) -> int:
    """Compare virtual GPUs with PyTorch's own tables of operators, and with the tests of a checkout the user has."""
    return subprocess.run(
        [str(python), str(ROOT / "packages" / "vgpu" / "tools" / "oracle.py"), *args], cwd=ROOT
    ).returncode


def third_party(python: Path, args: list[str]) -> int:
    """Run the tests of other projects, from checkouts the user has, and write the page of what passed."""
    return subprocess.run(
        [str(python), str(ROOT / "packages" / "vgpu" / "tools" / "third_party.py"), *args], cwd=ROOT
    ).returncode


def site(python: Path, args: list[str]) -> int:
    """Make static HTML of the notebooks, the catalogue, the pages and the API; nothing is asked of the network."""
    return subprocess.run([str(python), "-m", "website.build", *args], cwd=ROOT).returncode


def links(python: Path, args: list[str]) -> int:
    """Write the links to where the course runs online, and the cells that bring it along there."""
    return subprocess.run([str(python), "-m", "course", "links", *args], cwd=ROOT).returncode


def lint(python: Path, args: list[str]) -> int:
    """Format, style and types; all three report before any of them fails the command."""
    tools = (["ruff", "format", "--check", "."], ["ruff", "check", "."], ["mypy"])
    return max(subprocess.run([str(python), "-m", *tool, *args], cwd=ROOT).returncode for tool in tools)


def clean() -> int:
    """Remove what the other commands can make again."""
    doomed = [VENV, *(ROOT / name for name in BUILDS)]
    for top in sorted(ROOT.iterdir()):
        if top.is_dir() and top.name not in READERS_OWN and top != VENV:
            doomed += [top] if top.name in CACHES else [found for name in CACHES for found in top.rglob(name)]
    for path in doomed:
        if path.exists():
            say(f"removing {path.relative_to(ROOT)}")
            shutil.rmtree(path)
    return 0


COMMANDS = {
    command.__name__.replace("_", "-"): command
    for command in (lab, fresh, test, long, oldest, notebooks, bench, oracle, third_party, site, links, lint)
}


# ---------------------------------------------------------------- the command line


def say(line: str) -> None:
    """One line a step."""
    print(f"[frcnn_lite] {line}", flush=True)


def run(command: list[str], failure: str) -> None:
    """Run a step of the set-up; on a terminal show that it is alive, since pip is silent for minutes."""
    start = time.monotonic()
    step = subprocess.Popen(command, cwd=ROOT)
    try:
        while step.poll() is None:
            time.sleep(0.2)
            if sys.stdout.isatty():
                print(f"\r  {time.monotonic() - start:.0f} s ", end="", flush=True)
    except BaseException:
        step.terminate()  # an interrupted set-up must not go on in the background
        step.wait()
        raise
    if sys.stdout.isatty():
        print("\r", end="")
    if step.returncode:
        raise TaskError(failure)


def main(argv: list[str] | None = None) -> int:
    """Parse `COMMAND [--torch CHOICE] [args...]`; arguments this file does not know go to the command."""
    parser = argparse.ArgumentParser(
        prog="tasks.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("command", nargs="?", choices=[*COMMANDS, "clean"], help="what each does stands above")
    which = "which build of torch .venv holds (default: the one it holds, at first PyTorch's own default)"
    parser.add_argument("--torch", metavar="|".join(TORCH_CHOICES), help=which)
    options, args = parser.parse_known_args(argv)
    if options.command is None:
        parser.print_help(sys.stderr)
        return 2
    # A waiting thread of torch must not burn the core that another needs: steps on shared cores took 8 times longer.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        return clean() if options.command == "clean" else COMMANDS[options.command](set_up(options.torch), args)
    except TaskError as error:
        print(f"[frcnn_lite] {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
