"""Every rank has a list of gradients, of the same shapes on all ranks. Return the list of their averages over the
ranks. Target: one collective.
"""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor, distributed

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong
from course.lessons.nbpuzzles.costs import OnRanks, right_and_cheap, right_but_dear

hints = (
    "A collective takes one tensor. How do several tensors become one?",
    "`torch.cat([g.flatten() for g in gradients])` is a bucket; DDP fills such buckets of 25 MB.",
    "After the `all_reduce`, `bucket.split([g.numel() for g in gradients])` gives pieces, and `view_as` their shapes.",
)


def cases(random: Random) -> Sequence[Case]:
    torch.manual_seed(random.randrange(2**31))
    drawn = []
    for count, ranks in ((1, 2), (2, 2), (3, 2), (2, 1)):
        shapes = [(3, 4), (random.randint(1, 9),), (2, 2, random.randint(1, 9))][-count:]
        drawn.append(OnRanks(([[torch.randn(shape) for shape in shapes] for _ in range(ranks)],)))
    return drawn


def average_gradients(gradients: list[Tensor]) -> list[Tensor]:
    bucket = torch.cat([gradient.flatten() for gradient in gradients])
    distributed.all_reduce(bucket)
    bucket /= distributed.get_world_size()
    pieces = bucket.split([gradient.numel() for gradient in gradients])
    return [piece.view_as(gradient) for piece, gradient in zip(pieces, gradients, strict=True)]


agree = right_and_cheap


@wrong(recognise=lambda cases, given: right_but_dear(cases, given, average_gradients))
def one_for_each(gradients: list[Tensor]) -> list[Tensor]:
    """the averages are right, and there is more than one collective. Each has a cost of its own before its first byte
    is sent, so a model with hundreds of small tensors waits hundreds of times. Put them into one tensor first.
    """
    for gradient in gradients:
        distributed.all_reduce(gradient)
    return [gradient / distributed.get_world_size() for gradient in gradients]


@wrong
def sums(gradients: list[Tensor]) -> list[Tensor]:
    """these are sums over the ranks. DDP divides them by the number of ranks, so that the size of a step does not grow
    with the number of GPUs.
    """
    return [average * distributed.get_world_size() for average in average_gradients(gradients)]


@wrong
def divided_by_two(gradients: list[Tensor]) -> list[Tensor]:
    """these are sums, divided by 2. That is the average of two ranks; on one rank it is half of the gradient."""
    return [total / 2 for total in sums(gradients)]
