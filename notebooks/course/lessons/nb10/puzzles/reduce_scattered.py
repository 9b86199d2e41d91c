"""Every rank calls it with a tensor of its own, all of one length that the ranks divide evenly. Add them up, and return
on rank r the r-th part of the sum. `reduce_scatter` itself is not allowed.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor, distributed

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb10.cases import CALLED, RanksCase

hints = (
    "Cut the tensor into as many parts as there are ranks: `whole.chunk(...)`.",
    "`distributed.reduce(part, rank)` adds `part` of all ranks up, in place, on that one rank. "
    "All ranks have to call it, for every part and in the same order.",
    "Take copies of the parts, so that `whole` stays as it is, call `reduce` for each of them with its number, "
    "and return the part with your own number.",
)


def reduce_scattered(whole: Tensor) -> Tensor:
    parts = [part.clone() for part in whole.chunk(distributed.get_world_size())]
    for rank, part in enumerate(parts):
        distributed.reduce(part, rank)
    return parts[distributed.get_rank()]


def _is_called(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return any(isinstance(ranks_of, list) and CALLED in ranks_of for ranks_of in given)


def cases(random: Random) -> Sequence[Case]:
    fixed = ((1, 2, 3, 4), (10, 20, 30, 40))
    sizes = [2, random.choice([4, 6])]
    drawn = [tuple(tuple(random.randint(0, 99) for _ in range(size)) for _ in range(2)) for size in sizes]
    return [RanksCase((values,)) for values in (fixed, *drawn)]


@wrong(recognise=_is_called)
def reduce_scatter_itself(whole: Tensor) -> Tensor:
    """you called reduce_scatter. Write what it does with other collectives, such as `reduce`."""
    part = torch.empty_like(not_added(whole))
    distributed.reduce_scatter_tensor(part, whole)
    return part


@wrong
def not_added(whole: Tensor) -> Tensor:
    """this is the rank's own part of its own tensor. The parts of the other ranks are missing.

    Source: each rank kept its own share of a norm in pytorch/torchtitan issue 766, 2025
    """
    return whole.chunk(distributed.get_world_size())[distributed.get_rank()]


@wrong
def divided(whole: Tensor) -> Tensor:
    """this is the sum, divided by the number of ranks. reduce_scatter adds up; that FSDP averages its gradients is a
    step of its own, `scattered` in the notebook.

    Source: vllm-project/vllm pull request 33088, 2026, puts a sum where an average was
    """
    return reduce_scattered(whole) / distributed.get_world_size()


@also(divided)
def averaged_in_whole_numbers(whole: Tensor) -> Tensor:
    return reduce_scattered(whole) // distributed.get_world_size()


@wrong
def each_its_own(whole: Tensor) -> Tensor:
    """this is how ranks end that call reduce for their own part alone: rank 0 sends to rank 0 while rank 1 sends to
    rank 1. All ranks have to call it for every part.

    Source: ranks that called different numbers of collectives in PrimeIntellect-ai/prime-rl issue 2515, 2026
    """
    part = not_added(whole).clone()
    distributed.reduce(part, distributed.get_rank())
    return part
