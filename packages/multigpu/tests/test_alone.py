"""The commands need nothing but Python: here they run where no installed package can be imported."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import multigpu
from multigpu.__main__ import COMMANDS
from multigpu.failures import catalogue

FOLDER = Path(multigpu.__file__).parents[1]
FAULT = "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x.cuda()\n"
REPAIRABLE = "from torch import nn\n\nmodel = nn.DataParallel(net)\nmodel.decode(x)\n"


@pytest.fixture
def python(tmp_path):
    """Runs Python in a folder of its own, without the folder of installed packages (`-S`)."""

    def run(*arguments, given="", first=""):
        paths = [str(first), str(FOLDER)] if first else [str(FOLDER)]
        return subprocess.run(
            [sys.executable, "-S", *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            input=given,
            capture_output=True,
            text=True,
        )

    return run


@pytest.fixture
def command(python):
    """Runs `python -m multigpu`."""
    return lambda *arguments, **options: python("-m", "multigpu", *arguments, **options)


def test_nothing_is_imported_but_python(python):
    names = "import sys, multigpu.lint, multigpu.explain, multigpu.doctor, multigpu.failures.page\n"
    ran = python("-c", names + "print(*{name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names)")
    assert sorted(ran.stdout.split()) == ["__main__", "multigpu"], ran.stderr


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help(command, name):
    ran = command(*[name] * bool(name), "--help")
    assert ran.returncode == 0 and ran.stdout.startswith("usage: python -m multigpu") and not ran.stderr
    assert name or ("--version" in ran.stdout and all(f"\n  {each} " in ran.stdout for each in COMMANDS))


def test_version(command):
    assert command("--version").stdout == f"{multigpu.__version__}\n"


def test_an_unknown_command_is_named(command):
    ran = command("explian")
    assert ran.returncode == 2 and "explian" in ran.stderr and not ran.stdout


def test_all_failures_are_listed(command):
    assert len(command("explain", "--list").stdout.splitlines()) == len(catalogue()) > 400


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("found at least two devices, cuda:0 and cuda:1", "two-devices"),
        ("CUDA out of memory. Tried to allocate 2.00 MiB", "out-of-memory"),
        ("grad can be implicitly created only for scalar outputs", "backward-on-vector"),
        ("duplicate-gpu", "duplicate-gpu"),
    ],
)
def test_a_message_or_a_name_is_explained(command, text, entry):
    ran = command("explain", text)
    assert ran.returncode == 0 and ran.stdout.startswith(f"{entry}: ") and "  fix: " in ran.stdout


def test_a_traceback_of_another_program_is_explained(command):
    frames = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n'
    assert command("explain", given=f"{frames}RuntimeError: found at least two devices").stdout.startswith(
        "two-devices: "
    )


def test_a_log_is_explained(command, tmp_path):
    (tmp_path / "train.log").write_text("step 7\nCUDA out of memory. Tried to allocate 2.00 MiB\n")
    assert command("explain", "train.log").stdout.startswith("out-of-memory: ")


def test_a_text_that_nothing_explains_is_called_so(command):
    ran = command("explain", "EQUIVOCATION")
    assert ran.returncode == 1 and "knows nothing" in ran.stderr and not ran.stdout


def test_a_fault_is_found(command, tmp_path):
    (tmp_path / "train.py").write_text(FAULT)
    ran = command("lint", "train.py")
    assert ran.returncode == 1 and ran.stdout.startswith("train.py:6: ") and "[FL001]" in ran.stdout


def test_a_fault_is_found_in_a_notebook(command, tmp_path):
    cell = {"cell_type": "code", "source": FAULT, "metadata": {}, "outputs": [], "execution_count": None}
    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}
    (tmp_path / "train.ipynb").write_text(json.dumps(book))
    (found,) = json.loads(command("lint", "--json", "train.ipynb").stdout)
    assert found["rule"] == "FL001"


def test_sarif_is_json(command, tmp_path):
    (tmp_path / "train.py").write_text(FAULT)
    (run,) = json.loads(command("lint", "--sarif", ".").stdout)["runs"]
    assert [found["ruleId"] for found in run["results"]] == ["FL001"]


def test_code_without_a_fault_is_left_alone(command, tmp_path):
    (tmp_path / "train.py").write_text(FAULT.replace("x.cuda()", "x"))
    ran = command("lint", "train.py")
    assert ran.returncode == 0 and not ran.stdout


def test_what_one_word_repairs_is_repaired(command, tmp_path):
    (tmp_path / "train.py").write_text(REPAIRABLE)
    command("lint", "--fix", "train.py")
    assert (tmp_path / "train.py").read_text() == REPAIRABLE.replace("model.decode", "model.module.decode")


def test_the_doctor_says_that_torch_is_missing_and_what_mends_it(command, tmp_path):
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\")")
    ran = command("doctor", first=tmp_path)
    assert ran.returncode == 1 and "FAIL  torch" in ran.stdout and "fix: " in ran.stdout
