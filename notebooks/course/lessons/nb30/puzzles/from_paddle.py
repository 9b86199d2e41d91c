"""Paddle's weight of a "Linear", "Conv2d" or "Embedding" as PyTorch wants it."""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from course.kit.learn.exercise import Case
from course.kit.learn.guarded import Guarded
from course.kit.learn.puzzle import wrong

hints = (
    "Paddle computes x @ W + b. And PyTorch?",
    "One of the three layers is turned; shapes do not tell, the kind of layer does.",
    '`return weight.T if layer == "Linear" else weight`',
)


def from_paddle(layer: str, weight: Tensor) -> Tensor:
    """PyTorch's weight from Paddle's, for a layer "Linear", "Conv2d" or "Embedding"."""
    is_turned = layer == "Linear"
    return weight.T if is_turned else weight


def cases(random: Random) -> Sequence[Case]:
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    cases: list[Case] = []
    for layer in ("Linear", "Conv2d", "Embedding") * 4:
        rows, columns = random.randint(2, 6), random.randint(2, 6)
        shape = (rows, columns, 3, 3) if layer == "Conv2d" else (rows, columns)
        cases.append(Guarded((layer, torch.rand(shape, generator=generator))))
    square = torch.rand(4, 4, generator=generator)
    return [Guarded(("Linear", square)), Guarded(("Embedding", square)), *cases]


def _equal(given: object, expected: Tensor) -> bool:
    return isinstance(given, Tensor) and torch.equal(given, expected)


agree = _equal


@wrong
def copy_as_it_is(layer, weight):
    """Linear is not turned here. A square one then loads without a word and computes something else.

    Source: PaddlePaddle/PaddleMIX issue 239, 2023: is nn.Linear not to be transposed?
    """
    return weight


@wrong
def turn_whatever_has_two_dimensions(layer, weight):
    """this is what turning every weight of two dimensions gives. An embedding has two, and is the same in both.

    Source: PaddlePaddle/PaddleNLP pull request 7341, 2023, needed a list of exceptions for this rule
    """
    return weight.T if weight.dim() == 2 else weight
