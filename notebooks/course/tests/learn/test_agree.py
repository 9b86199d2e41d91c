"""Results are compared by their values, whatever holds them."""

import math

import numpy as np
import pytest
import torch

from course.kit.learn.agree import near, same_values
from course.kit.learn.check import judge
from course.kit.learn.exercise import Case, Exercise, Mistake


def test_values_are_compared_and_their_containers_are_not():
    assert same_values((1, [torch.tensor(2), np.int64(3)]), [1, (2, 3)])
    assert not same_values(1, True) and not same_values([2.0], [2]) and not same_values([1], [1, 2])
    assert near(torch.tensor([0.1, 3.0]), [0.1, 3]) and near(1 + 1e-9j, 1 + 0j)
    assert not near([0.1], [0.1001]) and not near(0.1 + 0j, 0.1) and not near([0.1], 0.1) and not near("0.1", 0.1)


@pytest.mark.parametrize("agree", [same_values, near])
@pytest.mark.parametrize("nan", [math.nan, complex(math.nan, 1)])
def test_nan_is_equal_to_nan_and_to_no_number(agree, nan):
    assert agree([1.0, (nan,)], [1.0, [nan]])
    number = type(nan)(1)
    assert not agree(nan, number) and not agree(number, nan) and not agree(nan, type(nan)(math.inf))


@pytest.mark.parametrize("agree", [same_values, near])
def test_nan_in_tensors_and_arrays(agree):
    assert agree(torch.tensor([math.nan, 2]), np.array([math.nan, 2])) and agree(np.float32("nan"), math.nan)
    assert not agree(torch.tensor([2, math.nan]), np.array([math.nan, 2]))
    assert not agree(complex(math.nan), math.nan) and not agree("nan", math.nan) and not agree(None, math.nan)


@pytest.mark.parametrize("agree", [same_values, near])
def test_a_wrong_answer_that_gives_nan_is_named(agree):
    """The mean of an empty list is the usual one."""

    def wrong(values):
        return sum(values) / len(values) if values else math.nan

    exercise = Exercise(
        key="99.mean",
        task="Return the mean of `values`, or 0.0 if there are none.",
        reference=lambda values: wrong(values) if values else 0.0,
        cases=lambda random: [Case(([1.0, 2.0],)), Case(([],))],
        hints=("Ask whether there are values.",),
        mistakes=(Mistake("nan for none", "this is what comes out when nobody asks.", answers=(wrong,)),),
        agree=agree,
    )
    verdict = judge(exercise, lambda values: wrong([*values]))
    assert not verdict.solved and verdict.mistake is exercise.mistakes[0]
