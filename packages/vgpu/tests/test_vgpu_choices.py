"""Options and variables with a bad value: each is named in one line, with what came and what would be right."""

import os
import subprocess
import sys

import pytest

import vgpu
from vgpu.base import variables
from vgpu.racing import watch
from vgpu.starting import banner, choices, inherit

BAD = [
    ("memory", "lots", "memory must be a number of bytes or text such as '64MiB', got 'lots'"),
    ("memory", "0", "memory must be at least 512 bytes, got '0'"),
    ("profile", "v100", "profile must be one of t4, a100-40, a100-80, h100, h200, rtx4090, got 'v100'"),
    ("errors", "now", "errors must be 'early' or 'late', got 'now'"),
    ("random", "gpu", "random must be one of cpu, cuda, got 'gpu'"),
    ("triton", "yes", "triton must be 'interpret', got 'yes'"),
]


def run(*command: str, **environment: str) -> tuple[int, str]:
    """The status of a program, and the last line that it wrote to stderr."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith("VGPUS")}
    done = subprocess.run([sys.executable, *command], env=bare | environment, capture_output=True, text=True)
    return done.returncode, done.stderr.strip().rpartition("\n")[2]


@pytest.mark.parametrize(("name", "value", "said"), BAD)
def test_the_option_or_the_variable_is_named(monkeypatch, name, value, said):
    variable = f"VGPUS_{name.upper()}"
    monkeypatch.setenv(variable, value)
    with pytest.raises(ValueError) as found:
        choices.of_each({})
    assert str(found.value) == f"{variable}: {said}"
    monkeypatch.setenv(variable, "nonsense")
    with pytest.raises(ValueError) as found:
        choices.of_each({name: value}, "--vgpus-{}")
    assert str(found.value) == f"--vgpus-{name}: {said}"


def test_an_option_comes_before_its_variable_and_an_empty_variable_says_nothing(monkeypatch):
    monkeypatch.setenv("VGPUS_MEMORY", "nonsense")
    monkeypatch.setenv("VGPUS_PROFILE", "")
    chosen = choices.of_each({"memory": "64MiB"})
    assert chosen == {"memory": "64MiB", "profile": None, "errors": None, "random": None, "triton": None}


@pytest.mark.parametrize(
    ("read", "variable", "said"),
    [
        (watch.check, watch.VARIABLE, "'0', '1' or 'delay'"),
        (banner.say_what_is_hidden, inherit.QUIET, "'0' or '1'"),
    ],
)
def test_a_variable_of_a_few_words(monkeypatch, read, variable, said):
    monkeypatch.setenv(variable, "yes")
    with pytest.raises(ValueError) as found:
        read()
    assert str(found.value) == f"{variable} must be {said}, it is 'yes'"
    monkeypatch.setenv(variable, "")
    assert variables.choice(variable, "0", "1") == "0"


@pytest.mark.parametrize("number", ["two", "0", "65", "2.5", "-1", "²"])
def test_the_number_of_the_environment(monkeypatch, number):
    monkeypatch.setenv("VGPUS", number)
    with pytest.raises(ValueError) as found:
        vgpu.check_gpus(None)
    assert str(found.value) == f"VGPUS must be a number from 1 to 64, it is {number!r}"


@pytest.mark.parametrize("gpus", [0, 65, "2"])
def test_the_number_of_a_notebook(gpus):
    with pytest.raises((TypeError, ValueError), match=f"gpus must be .* from 1 to 64, got {gpus!r}|from 1 to 64, got"):
        vgpu.start_if_changed(gpus)
    assert not vgpu.is_enabled()


def test_the_command_says_it_in_one_line(tmp_path):
    (tmp_path / "program.py").write_text("")
    command = "-m", "vgpu", str(tmp_path / "program.py")
    error = "python -m vgpu: error: "
    assert run(*command, VGPUS="two") == (2, f"{error}VGPUS must be a number from 1 to 64, it is 'two'")
    assert run(*command, VGPUS_RACES="no") == (2, f"{error}VGPUS_RACES must be '0', '1' or 'delay', it is 'no'")
    assert run("-m", "vgpu", "--random", "gpu", *command[2:])[1] == f"{error}--random: {BAD[4][2]}"
    assert run(*command, VGPUS="")[0] == 0


@pytest.mark.parametrize(
    ("options", "environment", "said"),
    [
        ([], {"VGPUS": "two"}, "vgpu: VGPUS must be a number from 1 to 64, it is 'two'"),
        (["--vgpus", "2"], {"VGPUS_ERRORS": "now"}, f"vgpu: VGPUS_ERRORS: {BAD[3][2]}"),
        (["--vgpus", "2", "--vgpus-memory", "lots"], {}, f"vgpu: --vgpus-memory: {BAD[0][2]}"),
        (["--vgpus", "2", "-o", "vgpus_expected=("], {}, "vgpus_expected: '(' is not a regular expression: "),
    ],
)
def test_pytest_says_it_in_one_line(tmp_path, options, environment, said):
    status, line = run("-m", "pytest", *options, str(tmp_path), **environment)
    assert status == 4 and line.startswith(f"ERROR: {said}")
