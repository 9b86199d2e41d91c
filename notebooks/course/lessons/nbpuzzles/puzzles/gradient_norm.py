"""Under FSDP2 every rank holds a part of each gradient. Return the norm of the whole gradient, which clipping needs, on
every rank as a tensor without dimensions. Target: four bytes sent by each GPU.
"""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor, distributed

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong
from course.lessons.nbpuzzles.costs import OnRanks, right_and_cheap, right_but_dear

hints = (
    "The norm is the root of a sum of squares. Which part of that can a rank compute alone?",
    "Each rank adds up the squares of its own parts: one number of four bytes.",
    "`square = sum(part.square().sum() for part in parts)`, `all_reduce(square)`, and return `square.sqrt()`.",
)


def cases(random: Random) -> Sequence[Case]:
    torch.manual_seed(random.randrange(2**31))
    drawn = []
    for count in (1, 2, 3):
        sizes = [random.randint(3, 99) for _ in range(count)]
        parts = [[torch.randn(size) for size in sizes] for _ in range(2)]
        drawn.append(OnRanks((parts,), bytes_sent=4))
    return drawn


def gradient_norm(parts: list[Tensor]) -> Tensor:
    square = torch.stack([part.square().sum() for part in parts]).sum()
    distributed.all_reduce(square)
    return square.sqrt()


agree = right_and_cheap


@wrong(recognise=lambda cases, given: right_but_dear(cases, given, gradient_norm))
def gathered_first(parts: list[Tensor]) -> Tensor:
    """the norm is right, and more was sent than one number. Add up the squares of all parts of a rank first. (Whoever
    gathers the gradients gives up what sharding has saved: each rank holds all of them for a moment.)
    """
    own = torch.cat(parts)
    whole = own.new_empty(len(own) * distributed.get_world_size())
    distributed.all_gather_into_tensor(whole, own)
    return whole.norm()


@wrong
def norm_of_own_parts(parts: list[Tensor]) -> Tensor:
    """this is the norm of what the rank holds. Every rank would clip by a different factor, and the model would be
    pulled in a direction that no gradient has.

    Source: each rank kept its own share of a norm in pytorch/torchtitan issue 766, 2025
    """
    return torch.cat(parts).norm()


@wrong
def sum_of_norms(parts: list[Tensor]) -> Tensor:
    """this is the sum of the norms of the ranks, which is larger than the norm of the whole. Add up squares, and take
    the root at the end.
    """
    norm = torch.cat(parts).norm()
    distributed.all_reduce(norm)
    return norm


@wrong
def norms_of_the_parts_added(parts: list[Tensor]) -> Tensor:
    """this is a sum of the norms of all parts. Add up squares, and take the root at the end."""
    norm = torch.stack([part.norm() for part in parts]).sum()
    distributed.all_reduce(norm)
    return norm
