"""Weight of the grouped convolution that replaces a loop over convolutions with these weights."""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from course.kit.learn.exercise import Case
from course.kit.learn.guarded import Guarded
from course.kit.learn.puzzle import wrong
from course.lessons.nb24.cases import close

hints = (
    "Group k makes the k-th block of output channels. Along which axis of the weight do output channels lie?",
    "The input axis stays as it is: a grouped weight holds the channels of one group only.",
    "`torch.cat(weights)`",
)


def pack(weights: Sequence[Tensor]) -> Tensor:
    """Weight of the one grouped convolution that computes what these convolutions (out, in, kh, kw) compute."""
    return torch.cat(list(weights))


def cases(random: Random) -> Sequence[Case]:
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    shapes = [tuple(random.randint(2, 5) for _ in range(4)) for _ in range(6)]
    drawn = ([torch.randn(shape, generator=generator) for _ in range(random.randint(2, 5))] for shape in shapes)
    return [Guarded((weights,)) for weights in drawn]


agree = close


@wrong
def interleaved(weights):
    """these filters are dealt out in turn, one of each convolution. A group owns a block of neighbouring output
    channels: all filters of the first convolution come first.

    Source: onnx/onnx issue 2273, 2019, asks which of the two it is
    """
    return torch.stack(list(weights), dim=1).flatten(0, 1)


@wrong
def along_the_input(weights):
    """these weights are joined along the input channels. That is a convolution which adds the results up: one output,
    not one for each group.

    Source: the post of this notebook, about 2019, joins its *activations* along dimension 1, where that is right
    """
    return torch.cat(list(weights), dim=1)
