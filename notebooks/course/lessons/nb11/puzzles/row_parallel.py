"""On each of two ranks, compute F.linear(x, weight, bias) from this rank's half of the inputs: the first half of the
columns of `x` and of `weight` on rank 0, the second on rank 1. Every rank returns all of y.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, distributed

from course.kit.learn.exercise import TODO, Case
from course.kit.learn.puzzle import wrong
from course.kit.rank_case import RankCase
from course.kit.rank_threads import call_on_ranks

hints = (
    "Half of the inputs gives every output, but each one only in part.",
    "`x.chunk(size, 1)[rank] @ weight.chunk(size, 1)[rank].T`, and then a collective.",
    "`all_reduce` adds up the parts. Is the bias a part?",
)


LIMIT = 3.0  # seconds after which ranks that wait for each other end an answer


@dataclass(frozen=True)
class OnRanks(RankCase):
    """A call on two ranks, each with its GPU. The result is what each rank returned, as numbers."""

    def on_ranks(self, function: Callable[..., Any]) -> Any:
        """Raises RanksFailed, which says where the ranks stood if they waited for each other."""
        results = call_on_ranks(2, _on_rank, function, self.args, limit=LIMIT)
        return TODO if any(result is TODO for result in results) else results


def _on_rank(function: Callable[..., Any], args: tuple[Tensor, ...]) -> Any:
    x, weight, bias = (tensor.cuda() for tensor in args)  # noqa: FL001 the rank's own
    for matrix in (x, weight):  # what belongs to the other rank must not be looked at
        matrix.chunk(2, 1)[1 - distributed.get_rank()].fill_(math.nan)
    returned = function(x, weight, bias)
    return returned.tolist() if isinstance(returned, Tensor) else returned


def row_parallel(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    rank, size = distributed.get_rank(), distributed.get_world_size()
    y = x.chunk(size, 1)[rank] @ weight.chunk(size, 1)[rank].T
    distributed.all_reduce(y)
    return y + bias


def _has_nan(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return "nan" in repr(given)


def cases(random: Random) -> Sequence[Case]:
    cases = []
    for rows, half, outputs in ((3, 2, 2), *((random.randint(1, 4), random.randint(1, 4), 3) for _ in range(2))):
        inputs = 2 * half
        draw = torch.Generator().manual_seed(random.randrange(1000))
        shapes = ((rows, inputs), (outputs, inputs), (outputs,))
        cases.append(OnRanks(tuple(torch.randn(shape, generator=draw) for shape in shapes)))
    return cases


def _close(mine: Any, right: Any) -> bool:
    """Nested lists of numbers, equal within rounding."""
    return mine == right or torch.allclose(torch.tensor(mine), torch.tensor(right), rtol=1e-4, atol=1e-5)


agree = _close


@wrong(recognise=_has_nan)
def all_columns(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """you used columns that belong to the other rank. The checker has put NaN there, because in a layer that is divided
    they are not on this GPU. Rank 0 has the first half of the columns.
    """
    return F.linear(x, weight, bias)


@wrong
def the_bias_on_every_rank(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """this is what comes out when every rank adds the bias, and `all_reduce` adds it up. It belongs after the sum,
    once.

    Source: huggingface/text-generation-inference issue 1036, 2023; PaddlePaddle/Paddle pull request 35186, 2021
    """
    rank, size = distributed.get_rank(), distributed.get_world_size()
    y = F.linear(x.chunk(size, 1)[rank], weight.chunk(size, 1)[rank], bias)
    distributed.all_reduce(y)
    return y


@wrong
def never_added_up(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """this is a rank's part of the sum. The results of the two ranks have to be added up.

    Source: sgl-project/sglang pull request 14811, 2025, brings the missing sum back
    """
    rank, size = distributed.get_rank(), distributed.get_world_size()
    return x.chunk(size, 1)[rank] @ weight.chunk(size, 1)[rank].T + bias


@wrong
def what_the_call_returns(x: Tensor, weight: Tensor, bias: Tensor) -> Any:
    """this is what `all_reduce` returns, which is nothing: it changes its argument in place.

    Source: Wenyueh/MinivLLM issue 13, 2026
    """
    rank, size = distributed.get_rank(), distributed.get_world_size()
    y = x.chunk(size, 1)[rank] @ weight.chunk(size, 1)[rank].T
    return distributed.all_reduce(y)
