"""Answers are kept for a person, never for a program, and never lost."""

import json
from pathlib import Path

import pytest

from frcnn_lite.learn import state

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
def file(monkeypatch, tmp_path):
    monkeypatch.setenv("FRCNN_LITE_LEARN", "on")
    path = tmp_path / "deep" / "learn.json"
    monkeypatch.setattr(state, "state_file", lambda: path)
    return path


def test_answers_survive(file):
    state.record("predictions", "02.rows", "5")
    state.record("hints", "02.share", 2)
    state.record("predictions", "02.rows", "3")
    assert state.recall("predictions", "02.rows") == "3"
    assert json.loads(file.read_text()) == {"predictions": {"02.rows": "3"}, "hints": {"02.share": 2}}
    assert [path.name for path in file.parent.iterdir()] == ["learn.json"]


def test_nothing_is_read_or_written_when_nobody_is_there(file, monkeypatch):
    state.record("predictions", "02.rows", "5")
    monkeypatch.setenv("FRCNN_LITE_LEARN", "off")
    assert state.recall("predictions", "02.rows") is None
    state.record("predictions", "02.rows", "7")
    assert "7" not in file.read_text()


@pytest.mark.parametrize("content", ["{ not json", "[1, 2]"])
def test_an_unreadable_file_is_kept_aside(file, content):
    file.parent.mkdir()
    file.write_text(content)
    state.record("predictions", "02.rows", "5")
    assert state.recall("predictions", "02.rows") == "5"
    assert file.with_suffix(".unreadable.json").read_text() == content
