"""The tiles of the series: what is done, where to go on, and the routes."""

import re

import pytest

from course.kit.learn.state import record
from course.kit.live import metadata
from course.tools import tiles as module
from course.tools.lesson import Lesson, read_series
from course.tools.reading_order import ROUTES
from course.tools.tiles import hours, tiles


def lesson(number: str, minutes: int = 30) -> Lesson:
    title = f"Rows <{number}>: and more"
    return Lesson(f"{number}_rows.ipynb", title, "rows", minutes, (f"{number}.q",), (f"{number}.a", f"{number}.b"))


LESSONS = [lesson("00"), lesson("01", 45), lesson("07", 60)]


@pytest.fixture
def answered(monkeypatch):
    """What the reader has answered: (section, key) -> answer, to be filled by a test."""
    answers = {}
    monkeypatch.setattr(module, "recall", lambda section, key: answers.get((section, key)))
    return answers


def state(html: str, number: str) -> str:
    """The colour of a notebook's wide tile."""
    (tile,) = re.findall(rf'<a href="{number}_rows[^>]*border-left:5px solid (#\w+)[^>]*><b>{number}</b> ', html)
    return tile


def test_a_reader_who_comes_first_is_sent_to_the_first_notebook(answered):
    card = tiles(LESSONS)
    assert card.text == "0 of 6 exercises solved, in 3 notebooks; go on with 00 Rows <00>: and more."
    assert "Rows &lt;00&gt;<br><small>30 min · 0 of 2" in card.html and "<00>" not in card.html
    assert {state(card.html, number) for number in ("00", "01", "07")} == {module.NEW}


def test_who_stopped_in_the_middle_goes_on_there(answered):
    answered["predictions", "01.q"] = "5"
    assert tiles(LESSONS).text.endswith("go on with 01 Rows <01>: and more.")
    answered["solved", "01.a"] = answered["solved", "01.b"] = True
    card = tiles(LESSONS)
    assert card.text == "2 of 6 exercises solved, in 3 notebooks; go on with 00 Rows <00>: and more."
    assert state(card.html, "01") == module.DONE and "✔ 2 of 2" in card.html
    answered["solved", "00.b"] = True
    assert state(tiles(LESSONS).html, "00") == module.BEGUN


def test_who_has_done_everything_is_sent_to_no_new_notebook(answered):
    answered.update({("solved", key): True for lesson in LESSONS for key in lesson.exercises})
    assert tiles(LESSONS).text == "6 of 6 exercises solved, in 3 notebooks; go on with 07 Rows <07>: and more."


def test_a_file_keeps_the_tiles_of_a_reader_who_has_just_begun(tmp_path, monkeypatch):
    at_first = tiles(LESSONS)
    for name, value in {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), "FRCNN_LITE_LEARN": "on"}.items():
        monkeypatch.setenv(name, value)
    assert record("solved", "00.a", True)
    shown, named = tiles(LESSONS)._repr_mimebundle_()
    assert shown["text/plain"].startswith("1 of 6 exercises solved")
    assert named == metadata(still=at_first._repr_mimebundle_())


def test_hours_are_in_halves():
    assert [hours([lesson("00", minutes)]) for minutes in (10, 30, 60, 100)] == ["½ h", "½ h", "1 h", "1½ h"]


def test_every_route_is_of_notebooks_that_there_are_in_reading_order(answered):
    numbers = [lesson.number for lesson in read_series()]
    for route in ROUTES:
        assert sorted(route.numbers, key=numbers.index) == list(route.numbers)
    html = tiles(read_series()).html
    assert all(f"<b>{route.name}</b>" in html for route in ROUTES)
    assert "<b>A weekend</b>" not in tiles(LESSONS).html  # nothing leads to a notebook that is not there
