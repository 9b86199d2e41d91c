"""Every exercise of the series: its reference passes, each named wrong answer fails with its own words."""

import dataclasses
import html
import inspect
import math
import re
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch

import vgpu
from course.kit import learn
from course.kit.learn.by_key import exercise_names, find_exercise
from course.kit.learn.check import SEED, _agree, judge
from course.kit.learn.exercise import TODO
from course.kit.learn.surroundings import seed_all
from course.tools import puzzle_topics

ROOT = Path(__file__).resolve().parents[4]
KEYS = [
    f"{path.name[2:]}.{name}"
    for path in sorted((ROOT / "notebooks" / "course" / "lessons").glob("nb*"))
    for name in exercise_names(path.name[2:])
]
MISTAKES = [(key, k) for key in KEYS for k in range(len(find_exercise(key).mistakes))]


@pytest.fixture(autouse=True)
def two_gpus():
    with vgpu.virtual_gpus(2):
        yield


@pytest.mark.parametrize("key", KEYS)
def test_reference_solves_it(key):
    exercise = find_exercise(key)
    verdict = judge(exercise, exercise.reference)
    assert verdict.solved, verdict.words


@pytest.mark.parametrize(("key", "k"), MISTAKES)
def test_named_wrong_answer_is_recognised(key, k):
    exercise = find_exercise(key)
    mistake = exercise.mistakes[k]
    for answer in mistake.answers:
        verdict = judge(exercise, answer)
        assert not verdict.solved
        assert verdict.mistake is mistake, f"{mistake.name} was taken for {verdict.mistake and verdict.mistake.name}"
        assert mistake.message in verdict.words
        compared = "gave" in verdict.words and "right is" in verdict.words
        assert compared or " raises " in verdict.words


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("starter", [lambda *args, **kwargs: TODO, None], ids=["returns TODO", "raises"])
def test_starter_is_not_solved_yet(key, starter, capsys):
    def raises(*args, **kwargs):
        raise NotImplementedError

    learn.check(key, starter or raises)
    assert capsys.readouterr().out == f'{key}: not solved yet. First hint: learn.hint("{key}")\n'


@pytest.mark.parametrize("key", KEYS)
def test_a_table_of_answers_to_the_fixed_cases_does_not_pass(key):
    """The drawn cases differ from seed to seed, and there are enough of them."""
    exercise = find_exercise(key)
    one, other = exercise.cases(Random(1)), exercise.cases(Random(2))
    assert len(one) >= 3
    assert [case.show("f") for case in one] != [case.show("f") for case in other]


def with_nan(value):
    """The same result with NaN in place of every number; True and False are none."""
    match value:
        case torch.Tensor():
            floats = torch.promote_types(value.dtype, torch.half)
            return value if value.dtype == torch.bool else torch.full_like(value, math.nan, dtype=floats)
        case np.ndarray():
            return np.full_like(value, np.nan, dtype=float)
        case list() | tuple():
            return type(value)(map(with_nan, value))
        case dict():
            return {name: with_nan(item) for name, item in value.items()}
        case bool():
            return value
        case int() | float():
            return math.nan
    if dataclasses.is_dataclass(value):
        return dataclasses.replace(value, **{name: with_nan(item) for name, item in vars(value).items()})
    return value


@pytest.mark.parametrize("key", KEYS)
def test_nan_is_not_right_where_a_number_is(key):
    exercise = find_exercise(key)
    seed_all(SEED)
    for case in exercise.cases(Random(SEED)):
        right = case.call(exercise.reference)
        if repr(wrong := with_nan(right)) != repr(right):
            assert not _agree(exercise, wrong, right), case.show(exercise.name)


@pytest.mark.parametrize("key", KEYS)
def test_hints_climb_and_start_again(key, capsys):
    exercise = find_exercise(key)
    steps = len(exercise.hints)
    for _ in range(steps + 1):
        learn.hint(key)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == lines[-2:] == [f"Task: {exercise.task}", f"Hint 1 of {steps}: {exercise.hints[0]}"]
    assert lines[steps] == f"Hint {steps} of {steps}: {exercise.hints[-1]}"


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_checks_and_solves_exercises_that_its_lesson_has(path):
    """Exercises that a lesson has beyond them are asked by the notebook of puzzles."""
    text = path.read_text(encoding="utf-8")
    checked, solved = (set(re.findall(rf'learn\.{call}\(\\"([^"\\]+)', text)) for call in ("check", "solution"))
    own = {key for key in KEYS if key.startswith(path.name[:2])}
    assert checked == solved <= own and own - checked <= {*puzzle_topics.KEYS}


@pytest.mark.parametrize("key", KEYS)
def test_a_source_of_a_mistake_is_dated_and_public(key):
    """A mistake needs no source; one that nobody can look up is worse than none."""
    for mistake in find_exercise(key).mistakes:
        assert not mistake.source or re.search(r"\b20[12]\d\b", mistake.source), mistake.name
        assert not re.search("tried (while|by)|reader of this notebook|one step away", mistake.source), mistake.name


def test_a_message_says_you_only_where_the_checker_looks_at_the_very_thing():
    """Programs that are written differently give the same results."""
    for key in KEYS:
        for mistake in find_exercise(key).mistakes:
            assert mistake.recognise is not None or not re.match(r"(?i)your?\b", mistake.message), (key, mistake.name)


@pytest.mark.parametrize("key", KEYS)
def test_solution_is_the_reference_folded(key):
    card = learn.solution(key)
    assert "<details>" in card.html
    last_line = inspect.getsource(find_exercise(key).reference).splitlines()[-1].strip()
    assert html.escape(last_line.split("(")[0]) in card.html
    assert card.text == f"Solution of {key} (folded)"
