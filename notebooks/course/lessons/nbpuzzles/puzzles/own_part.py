"""Every rank has a tensor of the same length, which the ranks divide evenly. Return on rank r the r-th part of the sum
of all tensors. Target: half of the bytes that an `all_reduce` sends.
"""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor, distributed

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong
from course.lessons.nbpuzzles.costs import OnRanks, right_and_cheap, right_but_dear

hints = (
    "An `all_reduce` in a ring has two rounds. What does every rank hold after the first one?",
    "The first round alone is a collective of its own, and it gives each rank its part of the sum.",
    "`part = whole.new_empty(len(whole) // ranks)`, then `distributed.reduce_scatter_tensor(part, whole)`.",
)


def cases(random: Random) -> Sequence[Case]:
    torch.manual_seed(random.randrange(2**31))
    lengths = [2 * random.randint(1, 99) for _ in range(3)]
    return [OnRanks(([torch.randn(n) for _ in range(2)],), bytes_sent=4 * n // 2) for n in lengths]  # a ring of two


def own_part(whole: Tensor) -> Tensor:
    part = whole.new_empty(len(whole) // distributed.get_world_size())
    distributed.reduce_scatter_tensor(part, whole)
    return part


agree = right_and_cheap


@wrong(recognise=lambda cases, given: right_but_dear(cases, given, own_part))
def all_of_it(whole: Tensor) -> Tensor:
    """the part is right, and twice as much was sent as is needed: the second round of an `all_reduce` brings every rank
    the parts of the others, which are thrown away here.
    """
    distributed.all_reduce(whole)
    return whole.chunk(distributed.get_world_size())[distributed.get_rank()]


@wrong
def not_added(whole: Tensor) -> Tensor:
    """this is the rank's own part of its own tensor. What the other rank has for that part is missing."""
    return whole.chunk(distributed.get_world_size())[distributed.get_rank()]
