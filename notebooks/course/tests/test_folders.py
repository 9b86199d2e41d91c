"""Imports between the folders of the course: lessons and tools rest on the kit, no lesson on a different one, and
a test of one lesson is in its folder."""

import ast
from pathlib import Path

COURSE = Path(__file__).parents[1]


def imported(path):
    """The modules of the course that a file imports, each by the folder and the lesson that it is in."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("course."):
            yield node.module.split(".")[1:3]


def faults(folder, allowed):
    """Imports of the files in a folder that `allowed(path, place)` does not name."""
    return [
        f"{path.relative_to(COURSE)}: {'.'.join(place)}"
        for path in sorted((COURSE / folder).rglob("*.py"))
        for place in imported(path)
        if not path.name.startswith("test_") and not allowed(path, place)
    ]


def test_the_kit_imports_the_kit_alone():
    assert faults("kit", lambda path, place: place[0] == "kit") == []


def test_a_lesson_imports_the_kit_and_itself():
    def allowed(path, place):
        return place[0] == "kit" or place == list(path.relative_to(COURSE).parts[:2])

    assert faults("lessons", allowed) == []


def test_tools_reach_the_lessons_through_the_kit():
    assert faults("tools", lambda path, place: place[0] in ("kit", "tools")) == []


def test_a_test_of_one_lesson_is_in_its_folder():
    """Tests of what lessons share ask for all lessons by `by_key` or by number, and import none of them."""
    tests = sorted((COURSE / "tests").rglob("*.py"))
    found = [(path.name, place) for path in tests for place in imported(path) if place[0] == "lessons"]
    assert found == []


def test_every_notebook_has_its_lesson():
    numbers = sorted(path.name[:2] for path in COURSE.parent.glob("[0-9][0-9]_*.ipynb"))
    assert sorted(path.name[2:] for path in (COURSE / "lessons").glob("nb*")) == [*numbers, "puzzles"]
