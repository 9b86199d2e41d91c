"""The board, the clock, what a case was, and the page of results."""

import pytest

from course.kit.learn import state
from course.lessons.nb34 import desk
from course.lessons.nb34.bugs import KINDS
from course.lessons.nb34.measured import Measured
from course.lessons.nb34.symptom_board import Field, symptom_board

FOUND = {kind.name: Measured(f"symptom of {kind.name}") for kind in KINDS}


@pytest.fixture
def reader(monkeypatch, tmp_path):
    """A person whose answers are kept."""
    monkeypatch.setenv(state.SWITCH, "on")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(state, "state_file", lambda: tmp_path / "learn.json")


def test_a_board_is_red_until_a_case_is_solved(reader):
    before = desk.board(FOUND)
    state.record("solved", "34.memory", True)
    after = desk.board(FOUND)
    assert "repaired" not in before.text and after.text.count("repaired") == 1
    assert "1, A layer that forgets: repaired. 2, Ranks with different weights: silent; symptom of apart" in after.text


def test_nobody_there_and_nothing_is_solved(monkeypatch, capsys):
    monkeypatch.setenv(state.SWITCH, "off")
    desk.start_clock()
    desk.look_at_clock()
    assert capsys.readouterr().out.splitlines() == [
        "The clock runs in a live JupyterLab only, where answers are kept.",
        "The clock was not started.",
    ]
    assert "0 of 10 cases solved" in desk.results_page()


def test_the_clock_counts_what_was_solved_within_an_hour(reader, monkeypatch, capsys):
    now = [1000.0]
    monkeypatch.setattr(desk.time, "time", lambda: now[0])
    state.record("solved", "34.masks", True)
    state.record("solved_at", "34.masks", 900.0)
    desk.start_clock()
    for key, at in (("34.memory", 1600.0), ("34.apart", 4600.0), ("34.still", 4601.0)):
        state.record("solved", key, True)
        state.record("solved_at", key, at)
    now[0] = 1000.0 + 61 * 60
    desk.look_at_clock()
    assert (
        capsys.readouterr().out.splitlines()[-1] == "61 minutes since the start; 2 of 10 cases solved within the hour."
    )
    assert "4 of 10 cases solved" in desk.results_page() and "Within an hour: 2." in desk.results_page()


def test_a_page_of_results_is_written_once(reader, tmp_path, capsys):
    path = tmp_path / "mine.md"
    desk.keep_results(path)
    assert path.read_text(encoding="utf-8") == desk.results_page()
    with pytest.raises(FileExistsError):
        desk.keep_results(path)


def test_what_a_case_was_is_open_once_it_is_solved(reader):
    assert "<details open>" not in desk.post_mortem().html
    state.record("solved", "34.unseen", True)
    shown = desk.post_mortem().html
    assert shown.count("<details open>") == 1 and shown.count("<details>") == 9
    assert shown.index("<details open>") < shown.index("Pictures that nobody sees")


def test_a_board_needs_a_case():
    with pytest.raises(ValueError, match="`fields`"):
        symptom_board([], "none")
    assert "raises; it raised" in symptom_board([Field("one", "it raised", "raises")], "a board").text
