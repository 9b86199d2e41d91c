"""What a reader sees of answers that no list foresaw."""

import operator

import pytest
import torch

from frcnn_lite import learn
from frcnn_lite.learn.check import find_exercise, judge
from frcnn_lite.learn.exercise import Case, Exercise, Mistake

DOUBLE = Exercise(
    key="99.double",
    task="Twice x.",
    reference=lambda x: 2 * x,
    cases=lambda random: [Case((1,)), Case((2,)), Case((random.randint(3, 9),))],
    hints=("Add.",),
    mistakes=(Mistake("square", "you squared.", "issue 1, 2020", answers=(lambda x: x * x,)),),
)


def test_solved():
    verdict = judge(DOUBLE, lambda x: x + x)
    assert verdict.solved
    assert verdict.words == "solved. 3 calls agree with the reference."


def test_named_mistake_comes_with_a_counter_example():
    verdict = judge(DOUBLE, lambda x: x**2)
    assert verdict.words == "not yet: you squared. (issue 1, 2020)\n  double(1) gave 1; right is 2."


def test_unnamed_mistake_comes_with_a_counter_example_alone():
    verdict = judge(DOUBLE, lambda x: x + 1)
    assert verdict.mistake is None
    assert verdict.words == "not yet.\n  double(2) gave 3; right is 4."


def test_an_exception_is_reported_not_raised():
    verdict = judge(DOUBLE, lambda x: operator.truediv(x, 0))
    assert verdict.words == "not yet. double(1) raises ZeroDivisionError: division by zero"


def test_forgotten_return_is_a_wrong_answer():
    assert "double(1) gave None" in judge(DOUBLE, lambda x: None).words


def test_what_cannot_be_compared_is_a_wrong_answer():
    """A tensor of several values has no truth value."""
    verdict = judge(find_exercise("02.chunk_sizes"), lambda rows, devices: torch.ones(devices))
    assert "chunk_sizes(10, 2) gave <tensor (2,)>; right is [5, 5]." in verdict.words


def test_long_lines_are_wrapped(capsys):
    learn.check(
        "02.chunk_sizes", lambda rows, devices: [rows // devices + (k < rows % devices) for k in range(devices)]
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("02.chunk_sizes: not yet: you split evenly.")
    assert max(map(len, lines)) <= 100


def test_partly_solved_starter_is_not_solved_yet():
    assert judge(DOUBLE, lambda x: 2 if x == 1 else learn.TODO).words.startswith("not solved yet")


@pytest.mark.parametrize("key", ["98.nothing", "02.nothing", "no key", ""])
def test_unknown_exercise(key):
    with pytest.raises(KeyError, match="exercise"):
        find_exercise(key)


def test_check_wants_the_function_not_its_result():
    with pytest.raises(TypeError, match="wants the function itself, got \\[5, 5\\]"):
        learn.check("02.chunk_sizes", [5, 5])
