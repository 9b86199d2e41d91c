"""Commands that write files of the repository: what they read first, and what `--check` says."""

import runpy
import sys

import pytest

from course.__main__ import TOOLS
from course.tools.generated import write_or_check

WRITERS = [["course", tool] for tool in TOOLS] + [["multigpu.failures.page"]]


def not_made():
    pytest.fail("the files were made before the arguments had been read")


@pytest.mark.parametrize("arguments", [["--help"], ["--chekc"], ["surplus"]])
def test_arguments_are_read_before_anything_is_made(arguments):
    with pytest.raises(SystemExit):
        write_or_check("it", "Writes it.", not_made, arguments)


def test_check_compares_and_writes_nothing(tmp_path, capsys):
    old, new = tmp_path / "old.md", tmp_path / "new.md"
    old.write_text("as it was")
    made = {old: "as it is", new: "new"}
    assert write_or_check("it", "Writes it.", lambda: made, ["--check"]) == 1
    assert old.read_text() == "as it was" and not new.exists()
    assert write_or_check("it", "Writes it.", lambda: made, []) == 0
    assert {path: path.read_text() for path in made} == made
    assert write_or_check("it", "Writes it.", lambda: made, ["--check"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "up to date"


@pytest.mark.parametrize("command", WRITERS, ids=" ".join)
@pytest.mark.filterwarnings("ignore:.*found in sys.modules")
def test_help_of_each_writes_nothing(command, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [*command, "--help"])
    monkeypatch.setattr("pathlib.Path.write_text", lambda path, *_, **__: pytest.fail(f"{path} was written"))
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(command[0], run_name="__main__")
    assert ended.value.code == 0 and capsys.readouterr().out.startswith("usage: ")
