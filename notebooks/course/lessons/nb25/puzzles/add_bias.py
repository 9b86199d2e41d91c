"""Add a bias stored as (channels, classes) to an output (B, classes, channels)."""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from course.kit.learn.exercise import Case
from course.kit.learn.guarded import Guarded
from course.kit.learn.puzzle import wrong
from course.lessons.nb25.cases import close

hints = (
    "Name the axes of both tensors. Which axis of the bias belongs to which axis of the output?",
    "With 64 classes of 64 channels every order fits. Only one is right.",
    "`out + bias.T`",
)


def add_bias(out: Tensor, bias: Tensor) -> Tensor:
    """`out` (B, N, C) plus a bias that the post stores as (C, N): one number for each class and channel."""
    return out + bias.T


def cases(random: Random) -> Sequence[Case]:
    """As many classes as channels, the one case in which nothing raises."""
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    sizes = [random.randint(2, 64) for _ in range(6)]
    return [Guarded((torch.randn(3, n, n, generator=generator), torch.randn(n, n, generator=generator))) for n in sizes]


agree = close


@wrong
def transposed(out, bias):
    """this is the bias as it is stored: class 3, channel 5 has the number of class 5, channel 3. It raises for every
    other shape, and passes when there are as many classes as channels.

    Source: the post of this notebook, about 2019, stores its bias that way round
    """
    return out + bias
