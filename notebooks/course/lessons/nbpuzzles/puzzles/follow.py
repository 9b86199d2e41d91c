"""`average` follows `weights`: afterwards it is 0.9 times what it was and 0.1 times `weights`, changed in place. Return
nothing. Target: not a byte of new memory.
"""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong
from course.lessons.nbpuzzles.costs import InMemory, right_and_cheap, right_but_dear

hints = (
    "`0.1 * weights` is a new tensor, as large as the weights. Which operations write into what is there?",
    "Operations whose names end with an underscore do. `add_` takes a factor, `alpha`.",
    "`average.mul_(0.9).add_(weights, alpha=0.1)`, or `average.lerp_(weights, 0.1)`.",
)


def cases(random: Random) -> Sequence[Case]:
    torch.manual_seed(random.randrange(2**31))
    return [InMemory((torch.randn(n), torch.randn(n))) for n in (1, 100, random.randint(999, 4096))]


def follow(average: Tensor, weights: Tensor) -> None:
    average.lerp_(weights, 0.1)


agree = right_and_cheap


@wrong(recognise=lambda cases, given: right_but_dear(cases, given, follow))
def with_new_tensors(average: Tensor, weights: Tensor) -> None:
    """the average is right, and on the way there were new tensors. For a model of 7 billion weights in float32 each of
    them takes 28 GB for a moment.
    """
    average.copy_(0.9 * average + 0.1 * weights)


@wrong
def the_weights_are_changed(average: Tensor, weights: Tensor) -> None:
    """the average is right, and `weights` is a tenth of what it was. They are the weights of the model, which trains on
    with them.
    """
    average.mul_(0.9).add_(weights.mul_(0.1))


@wrong
def the_factors_exchanged(average: Tensor, weights: Tensor) -> None:
    """the factors are exchanged here: this average keeps a tenth of what it was, so it hardly averages."""
    average.lerp_(weights, 0.9)


@wrong
def a_new_name(average: Tensor, weights: Tensor) -> None:
    """`average` is as it was: `average = ...` inside a function gives a name to a new tensor, and the caller's tensor
    does not change.
    """
    average = 0.9 * average + 0.1 * weights
