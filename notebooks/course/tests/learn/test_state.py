"""Answers are kept for a person, never for a program, and never lost."""

import errno
import json
import os
import sys
from pathlib import Path

import pytest

from course.kit import learn
from course.kit.learn import state
from course.kit.learn.by_key import find_exercise

LAB = {"JPY_SESSION_NAME": "notebooks/02.ipynb"}


@pytest.mark.parametrize(
    ("environ", "live"),
    [
        ({}, False),
        (LAB, True),
        ({"VSCODE_PID": "1"}, True),
        (LAB | {"FRCNN_LITE_LEARN": "off"}, False),
        (LAB | {"PYTEST_CURRENT_TEST": "02::Cell 1"}, False),
        (LAB | {"CI": "true"}, False),
        ({"FRCNN_LITE_LEARN": "on", "CI": "true"}, True),
    ],
)
def test_who_is_there(environ, live):
    assert state.is_live(environ) is live


def test_state_directory_of_each_system():
    linux = state.state_file({"XDG_STATE_HOME": "/state"}, "linux")
    assert linux == Path("/state/frcnn_lite/learn.json")
    assert state.state_file({}, "linux") == Path.home() / ".local/state/frcnn_lite/learn.json"
    assert state.state_file({"LOCALAPPDATA": "/local"}, "win32") == Path("/local/frcnn_lite/learn.json")
    assert state.state_file({}, "darwin") == Path.home() / "Library/Application Support/frcnn_lite/learn.json"


@pytest.fixture
def new_kernel(monkeypatch):
    """Nothing told and nothing unsaved yet; a person is there."""
    monkeypatch.setenv("FRCNN_LITE_LEARN", "on")
    monkeypatch.setattr(state, "_told", set())
    monkeypatch.setattr(state, "_unsaved", {})
    monkeypatch.setattr(sys.modules["course.kit.learn.check"], "_hints_seen", {})  # `learn.check` is the function


@pytest.fixture
def file(monkeypatch, tmp_path, new_kernel):
    path = tmp_path / "deep" / "learn.json"
    monkeypatch.setattr(state, "state_file", lambda: path)
    return path


def test_answers_survive(file):
    state.record("predictions", "01.rows", "5")
    state.record("hints", "01.share", 2)
    state.record("predictions", "01.rows", "3")
    assert state.recall("predictions", "01.rows") == "3"
    assert json.loads(file.read_text()) == {"predictions": {"01.rows": "3"}, "hints": {"01.share": 2}}
    assert [path.name for path in file.parent.iterdir()] == ["learn.json"]


def test_nothing_is_read_or_written_when_nobody_is_there(file, monkeypatch):
    state.record("predictions", "01.rows", "5")
    monkeypatch.setenv("FRCNN_LITE_LEARN", "off")
    assert state.recall("predictions", "01.rows") is None
    state.record("predictions", "01.rows", "7")
    assert "7" not in file.read_text()


DIFFERENT = ["{ not json", "[1, 2]", '"predictions"', "null", "5", '{"predictions": ["01.rows"]}', "[" * 100_000]


@pytest.mark.parametrize("content", DIFFERENT, ids=range(len(DIFFERENT)))
def test_an_unreadable_file_is_kept_aside(file, content):
    file.parent.mkdir()
    file.write_text(content)
    state.record("predictions", "01.rows", "5")
    assert state.recall("predictions", "01.rows") == "5"
    assert file.with_suffix(".unreadable.json").read_text() == content


@pytest.mark.parametrize("content", DIFFERENT, ids=range(len(DIFFERENT)))
def test_a_file_of_a_different_shape_is_read_as_no_answer(file, content, capsys):
    file.parent.mkdir()
    file.write_text(content)
    assert state.recall("predictions", "01.rows") is None
    assert state.recall("predictions", "01.rows") is None
    told = capsys.readouterr().out
    assert told.count("Some of your earlier answers cannot be read.") == 1 and "learn.unreadable.json" in told


def test_what_can_be_read_of_a_file_of_a_different_shape_stays(file):
    file.parent.mkdir()
    file.write_text('{"predictions": {"01.rows": "5"}, "hints": 3}')
    assert state.recall("hints", "01.share") is None
    assert state.recall("predictions", "01.rows") == "5"
    assert json.loads(file.read_text()) == {"predictions": {"01.rows": "5"}}


@pytest.mark.parametrize("kept", ['"two"', "[2]", "null", "{}"])
def test_a_hint_counted_in_no_number_starts_again(file, kept, capsys):
    file.parent.mkdir()
    file.write_text(f'{{"hints": {{"01.share": {kept}}}}}')
    learn.hint("01.share")
    assert "Hint 1 of 3" in capsys.readouterr().out


@pytest.fixture(params=["file in the way", "read-only folder", "no home"])
def no_place(request, monkeypatch, tmp_path, new_kernel):
    """A machine where answers cannot be written, and a word of the reason."""
    if request.param == "no home":
        monkeypatch.setattr(state, "state_file", nobody)
        return "home directory"
    place = tmp_path / "state"
    if request.param == "file in the way":
        place.write_text("")
    else:
        (place / "frcnn_lite").mkdir(parents=True)
        (place / "frcnn_lite").chmod(0o500)
        if os.access(place / "frcnn_lite", os.W_OK):
            pytest.skip("this user may write anywhere")
    monkeypatch.setattr(state, "state_file", lambda: place / "frcnn_lite" / "learn.json")
    return str(place)


def nobody():
    raise RuntimeError("Could not determine home directory.")


def test_where_nothing_can_be_written_answers_last_for_the_kernel(no_place, capsys):
    assert state.recall("predictions", "01.rows") is None
    told = capsys.readouterr().out
    assert "Your answers are not kept: they last until this kernel stops. The reason: " in told and no_place in told
    assert state.record("predictions", "01.rows", "5") is False
    assert state.recall("predictions", "01.rows") == "5"
    learn.hint("01.share")
    assert "not kept" not in capsys.readouterr().out


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="a folder in which not even root can write")
def test_answers_in_proc(monkeypatch, new_kernel, capsys):
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nope")
    learn.check("01.rows_lost", find_exercise("01.rows_lost").reference)
    assert "not kept" in (out := capsys.readouterr().out) and "/proc/nope" in out and "solved." in out


def test_a_full_disk_leaves_the_old_answers(file, monkeypatch, capsys):
    assert state.record("predictions", "01.rows", "5") is True

    def full(path, *args, **kwargs):
        path.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "learn.json")

    monkeypatch.setattr(Path, "write_text", full)
    assert state.record("predictions", "01.rows", "3") is False
    assert "No space left on device: learn.json" in capsys.readouterr().out
    assert state.recall("predictions", "01.rows") == "3"
    assert json.loads(file.read_text()) == {"predictions": {"01.rows": "5"}}
    assert [path.name for path in file.parent.iterdir()] == ["learn.json"]


def test_answers_that_cannot_be_read_are_not_written_over(file, monkeypatch, capsys):
    """A file that belongs to a different user, in a folder of one's own: moving a new one over it would work."""
    state.record("predictions", "01.rows", "5")
    before, read_text = file.read_text(), Path.read_text

    def refuse(path, *args, **kwargs):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "read_text", refuse)
    assert state.recall("predictions", "01.rows") is None
    assert state.record("hints", "01.share", 2) is False and state.recall("hints", "01.share") == 2
    assert capsys.readouterr().out.count(f"Permission denied: {file}") == 2
    assert read_text(file) == before
