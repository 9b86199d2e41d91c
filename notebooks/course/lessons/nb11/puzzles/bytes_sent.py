"""Bytes that each GPU sends in a training step in float32 on a mesh of `groups` groups (data) of `n` GPUs (tensor):
`parameters` of the model, `layers` blocks, `words` words of `width` numbers in the batch of all groups, all_reduce
in a ring.
"""

import math
from collections.abc import Sequence
from random import Random
from typing import Any

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong

hints = (
    "Two kinds of messages: within a group the sums of the activations, and between the groups the gradients, "
    "as in DDP. Which GPUs take part in each, and how large is what one of them sends?",
    "Within a group: 4 all_reduces for each block, over n GPUs, of the activations of the group's own words. "
    "Between the groups: the gradients of the part of the weights that this GPU holds, over `groups` GPUs.",
    "An all_reduce of b bytes over k GPUs lets each send 2 (k - 1) / k * b. Here b is 4 * words / groups * "
    "width with k = n, and 4 * parameters / n with k = groups.",
)


def bytes_sent(parameters: float, layers: int, words: int, width: int, groups: int, n: int) -> float:
    activation = 4 * words / groups * width  # a group has its share of the words
    inside = 4 * layers * activation * 2 * (n - 1) / n
    between = 4 * parameters / n * 2 * (groups - 1) / groups
    return inside + between


def cases(random: Random) -> Sequence[Case]:
    fixed = [
        (1e9, 32, 8192, 1600, 2, 4),
        (12.0, 1, 8, 1, 2, 2),
        (1e9, 24, 1024, 2048, 1, 8),
        (1e9, 24, 1024, 2048, 8, 1),
    ]
    drawn = []
    for _ in range(10):
        layers, width, groups = random.randint(1, 96), 64 * random.randint(1, 64), random.choice((2, 4, 8))
        sizes = 12.0 * layers * width**2, layers, groups * random.randint(1, 9999), width
        drawn.append((*sizes, groups, random.choice((2, 4, 8))))
    return [Case(arguments) for arguments in [*fixed, *drawn]]


def _near(mine: Any, right: float) -> bool:
    return math.isclose(mine, right, rel_tol=1e-9)


agree = _near


@wrong
def gradients_forgotten(parameters: float, layers: int, words: int, width: int, groups: int, n: int) -> float:
    """these are the bytes that are sent within a group. The groups see different words, so their gradients have to be
    averaged, too, as under DDP.
    """
    return bytes_sent(0, layers, words, width, groups, n)


@wrong
def all_words_in_each_group(parameters: float, layers: int, words: int, width: int, groups: int, n: int) -> float:
    """these are the bytes when every group has all words. The groups divide the batch, so the activations of a group
    are those of words / groups words.

    Source: axolotl-ai-cloud/axolotl pull request 3462, 2026, mends how many GPUs divide the batch
    """
    return bytes_sent(parameters, layers, words * groups, width, groups, n)


@wrong
def all_parameters(parameters: float, layers: int, words: int, width: int, groups: int, n: int) -> float:
    """these are the bytes when each GPU sends the gradients of all parameters. It holds one part in n of them, and
    sends the gradient of that part.
    """
    return bytes_sent(parameters * n, layers, words, width, groups, n)


@wrong
def gradients_over_all_GPUs(parameters: float, layers: int, words: int, width: int, groups: int, n: int) -> float:
    """these are the bytes when gradients are averaged over all GPUs of the mesh. GPUs of one group hold different parts
    of the weights, which must not be added up; those with the same part, one in each group, form the ring.

    Source: MoE gradients and their groups, asked about in facebookresearch/fairseq issue 4220, 2022
    """
    inside = bytes_sent(0, layers, words, width, groups, n)
    return inside + 4 * parameters / n * 2 * (groups * n - 1) / (groups * n)


@wrong
def forward_alone(parameters: float, layers: int, words: int, width: int, groups: int, n: int) -> float:
    """these are the bytes with the sums of the activations in forward alone. Backward sends as many, of the same size.

    Source: ROCm/rccl pull request 26, 2018, in which a reviewer counts one of two rounds
    """
    inside = bytes_sent(0, layers, words, width, groups, n)
    return bytes_sent(parameters, layers, words, width, groups, n) - inside / 2


@wrong
def to_everybody(parameters: float, layers: int, words: int, width: int, groups: int, n: int) -> float:
    """these are the bytes when every GPU sends its tensor to all others. A ring sends less: 2 (k - 1) / k of it.

    Source: ROCm/rccl pull request 26, 2018, takes such a factor out of a test program
    """
    return 4 * layers * 4 * words / groups * width * (n - 1) + 4 * parameters / n * (groups - 1)


@wrong
def one_round(parameters: float, layers: int, words: int, width: int, groups: int, n: int) -> float:
    """these are the bytes of one round of the ring. An all_reduce has two: one adds up, and one hands out the sums."""
    return bytes_sent(parameters, layers, words, width, groups, n) / 2
