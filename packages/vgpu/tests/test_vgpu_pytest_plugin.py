"""`pytest --vgpus N`, the fixture and the marker, each in a pytest of its own."""

import importlib.metadata
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from vgpu.base import record
from vgpu.observing import pytest_run

PLUGIN = "vgpu.pytest_plugin"
INSTALLED = any(e.value == PLUGIN for e in importlib.metadata.entry_points(group="pytest11"))
XDIST = ("-p", "xdist", "-n")

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

    def test_ranks(self, vgpu_ranks):
        assert vgpu_ranks(torch.distributed.get_rank)() == [0, 1, 2, 3]
"""


# A suite whose author never heard of virtual GPUs: conftest.py asks at once, and tests skip in every way there is.
CONFTEST = """
import torch

GPUS = torch.cuda.device_count()

def pytest_report_header():
    return f"conftest.py saw {GPUS} GPUs"
"""
SUITE = """
import subprocess, sys, unittest
import pytest, torch
import torch.multiprocessing as mp

GPUS = torch.cuda.device_count()

@pytest.mark.skipif(GPUS < 2, reason="too few")
def test_two():
    assert torch.ones(1, device="cuda:1").is_cuda

def test_cpu():
    torch.ones(1)

@pytest.mark.skipif(torch.cuda.device_count() < 8, reason="too few")
def test_decorator():
    pass

@pytest.mark.skipif(GPUS < 8, reason="needs 8 GPUs")
class TestReason:
    def test_method(self):
        pass

@pytest.mark.multigpu
@pytest.mark.skipif(GPUS < 8, reason="too few")
def test_marker():
    pass

@pytest.mark.skip(reason="needs a network")
def test_network():
    pass

class TestUnittest(unittest.TestCase):
    @unittest.skipIf(torch.cuda.is_available(), "on the CPU only")
    def test_cpu_only(self):
        pass

    @unittest.skipUnless(torch.cuda.device_count() > 7, "too few")
    def test_method(self):
        pass

def test_body():
    if torch.cuda.device_count() < 8:
        pytest.skip("too few")

@pytest.mark.xfail
def test_fails():
    assert False

def work(rank):
    torch.ones(1, device=f"cuda:{rank}")

def test_spawned():
    mp.spawn(work, nprocs=2)

PROGRAM = '''
import os, torch
torch.ones(1, device=f"cuda:{os.environ['LOCAL_RANK']}")
try:
    torch.cuda.temperature()
except NotImplementedError:
    pass
'''

def test_launched(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    subprocess.run([*torchrun, str(tmp_path / "program.py")], check=True)

def test_compiled():
    assert torch.compile(lambda x: x + 1)(torch.ones(1, device="cuda")).item() == 2
"""
MODULE = """
import pytest, torch

if torch.cuda.device_count() < 8:
    pytest.skip("too few", allow_module_level=True)
"""
SKIPPED = {
    "test_module.py: too few",
    "test_suite.py::TestReason::test_method: needs 8 GPUs",
    "test_suite.py::TestUnittest::test_method: too few",
    "test_suite.py::test_body: too few",
    "test_suite.py::test_decorator: too few",
    "test_suite.py::test_marker: too few",
}
UNSIMULATED = {
    "test_suite.py::test_compiled: torch.compile, which runs eagerly",
    "test_suite.py::test_launched: torch.cuda.temperature",
}
SAID = "vgpu: 4 tests ran on virtual GPUs; skipped although they ask for GPUs: 6; met what is not simulated: 2"


@pytest.fixture
def suite(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "test_module.py").write_text(MODULE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = multigpu: asks for GPUs\n")
    return tmp_path


def run_pytest(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """With this plugin alone: some environments have plugins that take longer to import than torch."""
    plugin = ["-p", "vgpu" if INSTALLED else PLUGIN]
    command = [sys.executable, "-m", "pytest", "-q", "--strict-markers", *plugin, *arguments]
    # Without CI: where it is set, pytest's summary repeats messages whole, and they are counted here.
    env = {k: v for k, v in os.environ.items() if not k.startswith(("VGPUS", "PYTEST_")) and k != "CI"} | environment
    env.setdefault("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=600)


def write(folder: Path, session: int) -> None:
    (folder / "test_it.py").write_text(TESTS.replace("SESSION", str(session)))


@pytest.mark.parametrize(
    ("session", "arguments", "environment"),
    [
        pytest.param(0, (), {}, marks=pytest.mark.exhaustive),
        (4, ("--vgpus", "4", "--vgpus-force"), {}),
        pytest.param(3, (), {"VGPUS": "3"}, marks=pytest.mark.exhaustive),
    ],
)
def test_option_environment_fixture_and_marker(tmp_path, session, arguments, environment):
    write(tmp_path, session)
    done = run_pytest(tmp_path, *arguments, **environment)
    assert "5 passed" in done.stdout, done.stdout + done.stderr


def test_a_suite_that_never_heard_of_them(suite):
    done = run_pytest(
        suite, "-v", "--vgpus", "2", "--vgpus-force", "--vgpus-memory", "1GiB", "--vgpus-no-skips", "--vgpus-strict"
    )
    lines = done.stdout.splitlines()
    assert "conftest.py saw 2 GPUs" in lines and "vgpu: 2 virtual GPUs, 1 GiB each" in lines, done.stdout
    named = {line for line in lines if ".py" in line and ": " in line and "Warning" not in line}
    assert named >= SKIPPED | UNSIMULATED, done.stdout
    assert not [
        line for line in named if any(name in line for name in ("test_network:", "test_cpu_only:", "test_two:"))
    ]
    assert SAID in lines and done.returncode == 1
    why = "--vgpus-no-skips found 6 tests skipped that ask for GPUs; --vgpus-strict found 2 tests that met what is not"
    assert f"FAILED vgpu - {why} simulated" in lines
    assert list(suite.glob("vgpu-record-*")) == []


@pytest.mark.exhaustive
def test_what_is_expected_fails_no_run_and_workers_of_xdist_tell_the_same(suite):
    pytest.importorskip("xdist")
    expected = "".join(f"    {re.escape(line)}\n" for line in SKIPPED | UNSIMULATED)
    with (suite / "pytest.ini").open("a") as file:
        file.write(f"vgpus_expected =\n{expected}")
    done = run_pytest(suite, "--vgpus", "2", "--vgpus-force", "--vgpus-no-skips", "--vgpus-strict", *XDIST, "1")
    assert done.stdout.splitlines()[-2] == "vgpu: 4 tests ran on virtual GPUs", done.stdout
    assert done.returncode == 0 and "cannot be rewritten" not in done.stdout


FEW = """
import torch

def test_it():
    torch.ones(1, device="cuda" if torch.cuda.device_count() > 2 else "cpu")

def test_the_other():
    torch.ones(1, device="cuda")
"""


def test_a_run_fails_where_too_few_tests_ran_on_gpus(tmp_path):
    (tmp_path / "test_few.py").write_text(FEW)
    done = run_pytest(tmp_path, "--vgpus", "2", "--vgpus-min", "2")
    assert done.returncode == 1 and "2 passed" in done.stdout
    assert "FAILED vgpu - 1 test ran on virtual GPUs, and --vgpus-min asks for 2" in done.stdout.splitlines()
    done = run_pytest(tmp_path, "--vgpus", "2", "--vgpus-min", "1")
    assert done.returncode == 0 and "vgpu: 1 test ran on virtual GPUs" in done.stdout.splitlines()
    assert "FAILED" not in done.stdout


@pytest.mark.exhaustive
def test_no_test_at_all_is_too_few_and_a_list_of_tests_is_not(tmp_path):
    assert run_pytest(tmp_path, "--vgpus", "2", "--vgpus-min", "1").returncode == 1
    (tmp_path / "test_few.py").write_text(FEW)
    assert run_pytest(tmp_path, "--vgpus", "2", "--vgpus-min", "2", "--collect-only").returncode == 0
    done = run_pytest(tmp_path, "--vgpus", "2", "--vgpus-min", "0")
    assert done.returncode == 4 and "--vgpus-min must be at least 1, got 0" in done.stderr


def test_folders_that_killed_sessions_left_are_removed_after_a_day(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    old, new, other = (tmp_path / name for name in ("vgpu-record-a", "vgpu-record-b", "else"))
    for folder in (old, new, other):
        folder.mkdir()
        (folder / "1.jsonl").touch()
    for folder in (old, other):
        os.utime(folder, (0, 0))
    pytest_run._sweep()
    assert [folder.exists() for folder in (old, new, other)] == [False, True, True]


def test_a_run_reads_what_its_processes_wrote_in_the_order_of_time(tmp_path, monkeypatch):
    monkeypatch.setenv(record.FOLDER, str(tmp_path))
    for moment, process in enumerate((9, 10, 1, 9)):
        monkeypatch.setattr(record.os, "getpid", lambda process=process: process)
        record.write(record.USED, test=f"test_{moment}")
    assert [test for _, test, _ in record.read(str(tmp_path))] == ["test_0", "test_1", "test_2", "test_3"]


@pytest.mark.parametrize(
    "option",
    [
        ("--vgpus-no-skips",),
        ("--vgpus-memory", "64MiB"),
        *(
            pytest.param(option, marks=pytest.mark.exhaustive)
            for option in (
                ("--vgpus-strict",),
                ("--vgpus-min", "3"),
                ("--vgpus-profile", "t4"),
                ("--vgpus-errors", "late"),
            )
        ),
    ],
)
def test_an_option_without_gpus_is_a_usage_error(tmp_path, option):
    done = run_pytest(tmp_path, *option)
    assert done.returncode == 4 and f"{option[0]} needs --vgpus N: this session has no virtual GPUs" in done.stderr
    assert run_pytest(tmp_path, VGPUS_MEMORY="64MiB").returncode == 5  # a variable asks for nothing: no tests, no error


def test_programs_that_a_marked_test_starts_have_its_machine(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import subprocess, sys\nimport pytest\n\n"
        "ASK = [sys.executable, '-c', 'import torch; print(torch.cuda.device_count())']\n\n"
        "@pytest.mark.virtual_gpus(3, force=True)\n"
        "def test_it():\n"
        "    assert subprocess.run(ASK, capture_output=True, text=True).stdout == '3\\n'\n"
    )
    done = run_pytest(tmp_path)
    assert "1 passed" in done.stdout, done.stdout


@pytest.mark.exhaustive
def test_workers_of_xdist(tmp_path):
    pytest.importorskip("xdist")
    write(tmp_path, 2)
    done = run_pytest(tmp_path, "--vgpus", "2", "--vgpus-force", *XDIST, "2")
    assert "5 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("number", ["0", pytest.param("65", marks=pytest.mark.exhaustive)])
def test_an_impossible_number_is_a_usage_error(tmp_path, number):
    done = run_pytest(tmp_path, "--vgpus", number)
    assert done.returncode == 4 and f"--vgpus: gpus must be from 1 to 64, got {number}" in done.stderr


def test_it_costs_nothing_when_nobody_asks(tmp_path):
    (tmp_path / "test_plain.py").write_text("import sys\n\ndef test_it():\n    assert 'torch' not in sys.modules\n")
    assert "1 passed" in run_pytest(tmp_path).stdout
    assert "--vgpus=N" in run_pytest(tmp_path, "--help").stdout


LATE_ERRORS = """
import pytest, torch

def test_ends_its_context():
    torch.zeros(3, device="cuda")[torch.tensor([5], device="cuda")]
    with pytest.raises(torch.AcceleratorError):
        torch.cuda.synchronize()

def test_has_a_context_of_its_own():
    assert torch.ones(2, device="cuda").sum() == 2

@pytest.mark.virtual_gpus(1, errors="early")
def test_marker():
    with pytest.raises(IndexError):
        torch.zeros(3, device="cuda")[torch.tensor([5], device="cuda")]

@pytest.mark.xfail(raises=torch.AcceleratorError, strict=True)
def test_waits_for_nothing():
    torch.zeros(3, device="cuda")[torch.tensor([5], device="cuda")]

def test_begins_anew():
    assert torch.ones(2, device="cuda").sum() == 2

@pytest.mark.xfail(raises=IndexError, strict=True)
def test_fails_for_a_reason_of_its_own():
    torch.zeros(3, device="cuda")[torch.tensor([5], device="cuda")]
    raise IndexError
"""


def test_each_test_begins_with_contexts_that_are_alive_and_ends_with_a_wait(tmp_path):
    (tmp_path / "test_it.py").write_text(LATE_ERRORS)
    run = run_pytest(tmp_path, "--vgpus", "2")
    assert "4 passed, 2 xfailed" in run.stdout, run.stdout + run.stderr


_LAUNCHED = r"The kernel that failed was launched by\nE +test_it\.py:{} in test_waits_for_nothing: torch\.zeros"
DEAD = """
import pytest, torch
import torch.multiprocessing as mp

def lookup():
    return torch.zeros(3, device="cuda")[torch.tensor([5], device="cuda")]

def test_compares():
    with pytest.raises(torch.AcceleratorError):
        lookup().sum().item()
    assert False

def test_waits_for_nothing():
    torch.zeros(3, device="cuda")[torch.tensor([5], device="cuda")]

def work(rank):
    lookup().sum().item()

def test_spawned():
    mp.spawn(work, nprocs=1)

def test_expects_it():
    with pytest.raises(torch.AcceleratorError):
        lookup().sum().item()

def test_fails_for_a_reason_of_its_own():
    assert torch.ones(1, device="cuda").item() == 2
"""


def test_the_summary_says_whose_context_was_dead_and_which_line_launched_the_kernel(tmp_path):
    (tmp_path / "test_it.py").write_text(DEAD)
    run = run_pytest(tmp_path, "--vgpus", "1")
    by = "a kernel failed on cuda:0, launched by test_it.py"
    named = [line.removeprefix("test_it.py::") for line in run.stdout.splitlines() if by in line]
    index = 'torch.zeros(3, device="cuda")[torch.tensor([5], device="cuda")]'
    assert named == [
        f"test_compares: {by}:6 in lookup: return {index}",
        f"test_waits_for_nothing: {by}:14 in test_waits_for_nothing: {index}",
        f"test_spawned: {by}:6 in lookup: return {index}",
    ], run.stdout
    assert re.search(_LAUNCHED.format(14), run.stdout)
    assert "4 failed, 1 passed" in run.stdout


def test_a_notice_and_a_race_name_lines_of_the_program_alone(tmp_path):
    program = """
import torch

def test_ranks(vgpu_ranks):
    assert vgpu_ranks(torch.distributed.get_rank)() == [0, 1]

def test_race():
    x = torch.zeros(3, device="cuda")
    x.add_(1)
    with torch.cuda.stream(torch.cuda.Stream()):
        x.add_(1)
"""
    (tmp_path / "test_it.py").write_text(program)
    run = run_pytest(tmp_path, "--vgpus", "2", "--vgpus-races")
    assert "test_it.py:5: Notice: virtual GPUs have no NCCL" in run.stdout, run.stdout
    lines = [line.removeprefix("E").strip() for line in run.stdout.splitlines()]
    told = lines[next(number for number, line in enumerate(lines) if line.startswith("first  add_")) :]
    assert [line for line in told if re.match(r"\S+:\d+ in ", line)] == [
        "test_it.py:9 in test_race: x.add_(1)",
        "test_it.py:11 in test_race: x.add_(1)",
    ]


def test_the_machine_of_one_test_ends_with_a_wait_too(tmp_path):
    program = """
import torch

def test_waits_for_nothing(virtual_gpus):
    torch.zeros(3, device="cuda")[torch.tensor([5], device="cuda")]
"""
    (tmp_path / "test_it.py").write_text(program)
    run = run_pytest(tmp_path)
    assert re.search(r"1 passed,.* 1 error", run.stdout) and "device-side assert triggered" in run.stdout, run.stdout
    assert re.search(_LAUNCHED.format(5), run.stdout), run.stdout


def test_errors_at_their_line_are_a_choice_of_the_session(tmp_path):
    program = """
import pytest, torch

def test_it():
    with pytest.raises(IndexError):
        torch.zeros(3, device="cuda")[torch.tensor([5], device="cuda")]
"""
    (tmp_path / "test_it.py").write_text(program)
    assert "1 passed" in run_pytest(tmp_path, "--vgpus", "1", "--vgpus-errors", "early").stdout
