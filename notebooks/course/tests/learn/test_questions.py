"""Every question of the series: each is asked where it belongs, and stored as it would be asked and answered today."""

import ast
from functools import cache
from importlib import import_module
from pathlib import Path

import nbformat
import pytest

from course.kit.learn.by_key import find_question
from course.kit.learn.predict import outcome_card, question_card

NOTEBOOKS = Path(__file__).resolve().parents[3]
LESSONS = sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))


@cache
def told(path, function):
    """(key, stored output) for each call of a function of learn, in reading order: outputs of learn come in turn."""
    found = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type != "code":
            continue
        made = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Call)]
        keys = [node.args[0].value for node in made if ast.unparse(node.func) == f"learn.{function}"]
        cards = [output.data for output in cell.outputs if "text/html" in output.get("data", {})]
        found += zip(keys, cards[: len(keys)], strict=True)
    return found


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_notebook_asks_its_questions_in_order(path):
    questions = import_module(f"course.lessons.nb{path.name[:2]}.questions").QUESTIONS
    assert [key for key, _ in told(path, "predict")] == [question.key for question in questions]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_stored_question_is_the_one_that_is_kept(path):
    for key, stored in told(path, "predict"):
        assert stored == question_card(find_question(key))._repr_mimebundle_(), key


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_stored_outcome_is_one_of_the_choices_folded(path):
    for key, stored in told(path, "reveal"):
        folded = [outcome_card(choice)._repr_mimebundle_() for choice in find_question(key).choices]
        assert stored in folded, key


def test_every_module_of_questions_has_its_notebook():
    folders = sorted((NOTEBOOKS / "course" / "lessons").glob("nb[0-9][0-9]"))
    assert [folder.name for folder in folders] == [f"nb{path.name[:2]}" for path in LESSONS]
