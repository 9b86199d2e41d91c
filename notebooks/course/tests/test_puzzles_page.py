"""The puzzles among the notebooks: in step with the lessons, each once, and counted for the reader."""

from course.kit.learn.by_key import exercise_names, find_exercise
from course.kit.learn.progress import board
from course.tools.puzzle_topics import KEYS, TARGETS, TOPICS
from course.tools.puzzles import PUZZLES, notebook_page

LESSONS = [*(f"{number:02}" for number in range(12)), "35", "36"]


def test_page_is_in_step_with_the_lessons():
    assert PUZZLES.read_text(encoding="utf-8") == notebook_page(), "run: python -m course puzzles, and make notebooks"


def test_every_exercise_of_parts_one_and_two_is_a_puzzle_once():
    known = [f"{number}.{name}" for number in [*LESSONS, TARGETS.rstrip(".")] for name in exercise_names(number)]
    assert sorted(KEYS) == sorted(known)


def test_puzzles_of_a_topic_become_harder():
    for topic in TOPICS:
        own = [minutes for key, minutes in topic.puzzles.items() if not key.startswith(TARGETS)]
        assert own == sorted(own), topic.title


def test_a_target_is_named_where_there_is_one():
    for key in KEYS:
        assert ("Target: " in find_exercise(key).task) == key.startswith(TARGETS)


def test_the_board_knows_what_is_solved(monkeypatch):
    monkeypatch.setattr("course.kit.learn.progress.recall", lambda section, key: key == "00.on_gpu")
    shown = board(["00.on_gpu", "00.beside", "01.share"])
    assert shown.text == "1 of 3 solved; go on with 2, beside."
    assert shown.html.count("✔") == 1 and 'title="00.on_gpu: solved"' in shown.html
    assert board(["00.on_gpu"]).text == "1 of 1 solved."
