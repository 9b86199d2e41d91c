"""Two layers are cut over the ranks: `first`, of shape (width, hidden / ranks), has some of the columns, and `second`,
of shape (hidden / ranks, width), the rows that belong to them. Return `relu(x @ first) @ second` of the whole layers,
on every rank. `x` is the same everywhere. Target: one collective.
"""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor, distributed

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong
from course.lessons.nbpuzzles.costs import OnRanks, right_and_cheap, right_but_dear

hints = (
    "`relu` looks at one number at a time. Does a rank need the hidden units of the others for its own ones?",
    "No: so nothing has to be sent between the two layers. What is `relu(x @ first) @ second` of one rank?",
    "A summand of the result: `y = (x @ first).relu() @ second`, and `all_reduce(y)`.",
)


def cases(random: Random) -> Sequence[Case]:
    torch.manual_seed(random.randrange(2**31))
    drawn = []
    for width, hidden in ((4, 6), (3, 8), (1, 2)):
        x = torch.randn(random.randint(1, 9), width)
        firsts = [torch.randn(width, hidden // 2) for _ in range(2)]
        seconds = [torch.randn(hidden // 2, width) for _ in range(2)]
        drawn.append(OnRanks(([x, x], firsts, seconds)))
    return drawn


def two_layers(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    y = (x @ first).relu() @ second
    distributed.all_reduce(y)
    return y


agree = right_and_cheap


@wrong(recognise=lambda cases, given: right_but_dear(cases, given, two_layers))
def sent_in_between(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """the result is right, and something was sent between the layers. The hidden units of a rank meet only the rows of
    `second` that the rank holds itself.
    """
    hidden = (x @ first).relu()
    everybodys = hidden.new_empty(2 * len(x), hidden.shape[1])
    distributed.all_gather_into_tensor(everybodys, hidden)
    y = everybodys.chunk(2)[distributed.get_rank()] @ second
    distributed.all_reduce(y)
    return y


@wrong
def own_summand(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """this is what one rank computes alone: the hidden units of the other rank are missing in the sum."""
    return (x @ first).relu() @ second


@wrong
def average(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """this is the average over the ranks. The ranks hold summands of the result, so their sum is wanted."""
    return two_layers(x, first, second) / distributed.get_world_size()


@wrong
def relu_after_the_sum(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """this is `relu` of the sum. It belongs between the layers, where each rank applies it to its own hidden units."""
    y = x @ first @ second
    distributed.all_reduce(y)
    return y.relu()


@wrong
def no_relu(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """this is what comes out without `relu`."""
    y = x @ first @ second
    distributed.all_reduce(y)
    return y
