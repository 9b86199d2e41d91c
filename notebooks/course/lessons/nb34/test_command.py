"""`python -m course capstone`: writes a program with ten bugs, and judges one that somebody has repaired."""

import pytest

import vgpu
from course.__main__ import TOOLS
from course.lessons.nb34 import command
from course.lessons.nb34.bugs import KINDS, RIGHT
from course.lessons.nb34.plant import definitions, plant


@pytest.fixture(autouse=True)
def two_gpus(monkeypatch):
    with vgpu.virtual_gpus(2):
        monkeypatch.setattr(command, "setup", lambda gpus: None)  # it would switch the devices of the test
        yield


def repaired(text):
    """The file with all functions as they should be, behind the line that names its program."""
    return text.splitlines()[0] + "\n" + RIGHT


def test_it_is_a_tool_of_the_course():
    assert TOOLS["capstone"][0] == command.__name__


def test_a_file_begins_with_its_symptoms_and_is_never_replaced_unasked(tmp_path, capsys):
    path = tmp_path / "ten_bugs_7.py"
    assert command.main(["7", str(path)]) == 0
    written = path.read_text(encoding="utf-8")
    assert definitions(written) == definitions(plant(7)) and written.startswith("# Ten bugs, program 7.")
    assert all(f"# {number}. {kind.title}: " in written for number, kind in enumerate(KINDS, 1))
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(SystemExit) as stopped:
        command.main(["7", str(path)])
    assert stopped.value.code == 2 and "exists already" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == "mine"
    assert command.main(["7", str(path), "--overwrite"]) == 0 and path.read_text(encoding="utf-8") == written


def test_a_file_is_judged_and_only_its_functions_run(tmp_path, capsys):
    path = tmp_path / "ten_bugs_0.py"
    path.write_text(command.HEAD.format(seed=0, name=path.name) + "\nraise SystemExit('it ran')\n" + plant(0), "utf-8")
    assert command.main(["check", str(path)]) == 1
    said = capsys.readouterr().out
    assert "0 of 10 are repaired." in said and "A layer that forgets: the rate of objects is 0.000" in said
    path.write_text(repaired(path.read_text("utf-8")), "utf-8")
    assert command.main(["check", str(path)]) == 0
    said = capsys.readouterr().out
    assert "10 of 10 are repaired." in said and "DataParallel throws replicas away" in said and "notebook 02" in said


def test_a_file_without_a_function_says_so():
    text = repaired("# Ten bugs, program 3. ...").replace("def wrap(", "def wrapped(")
    verdicts = {kind.name: words for kind, words in command.judge_file(text).items()}
    assert verdicts["statistics"] == "the file has no `wrap`" and verdicts["unseen"] == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-1"], ""),
        (["seven"], "got 'seven'"),
        (["check"], "needs the file"),
        (["check", "/nowhere.py"], "nowhere"),
    ],
)
def test_what_cannot_be_done_is_an_error_of_two(arguments, words, capsys):
    with pytest.raises(SystemExit) as stopped:
        command.main(arguments)
    assert stopped.value.code == 2
    assert any(word in capsys.readouterr().err for word in words.split("|"))


def test_a_file_of_something_else_is_refused(tmp_path, capsys):
    path = tmp_path / "other.py"
    path.write_text("print('hello')\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        command.main(["check", str(path)])
    assert "the first line has to be" in capsys.readouterr().err
