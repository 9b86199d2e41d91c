"""Every rank holds some columns of a weight: `weight` has the shape (width, columns / ranks). `x` has few rows and is
the same everywhere. Return the whole of `x @ weight`, with the columns in the order of the ranks, on every rank.
Target: each GPU sends at most half of the bytes of the result.
"""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor, distributed

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong
from course.lessons.nbpuzzles.costs import OnRanks, right_and_cheap, right_but_dear

hints = (
    "Something has to be gathered: the weight before the product, or the columns after it. Which is smaller?",
    "Gather the products, because `x` has few rows. An `all_gather` joins along the first dimension.",
    "Gather `(x @ weight).T.contiguous()` into a tensor of shape (columns, rows), and return its transpose.",
)


def cases(random: Random) -> Sequence[Case]:
    torch.manual_seed(random.randrange(2**31))
    drawn = []
    for rows, width, columns in ((1, 8, 3), (2, 16, 4), (3, random.randint(8, 32), random.randint(2, 9))):
        x = torch.randn(rows, width)
        weights = [torch.randn(width, columns) for _ in range(2)]
        drawn.append(OnRanks(([x, x], weights), bytes_sent=4 * rows * 2 * columns // 2))
    return drawn


def _joined(part: Tensor) -> Tensor:
    """The columns of all ranks."""
    own = part.T.contiguous()
    whole = own.new_empty(len(own) * distributed.get_world_size(), own.shape[1])
    distributed.all_gather_into_tensor(whole, own)
    return whole.T


def whole_output(x: Tensor, weight: Tensor) -> Tensor:
    own = (x @ weight).T.contiguous()
    columns = own.new_empty(len(own) * distributed.get_world_size(), len(x))
    distributed.all_gather_into_tensor(columns, own)
    return columns.T


agree = right_and_cheap


@wrong(recognise=lambda cases, given: right_but_dear(cases, given, whole_output))
def the_weight_first(x: Tensor, weight: Tensor) -> Tensor:
    """the result is right, and too much was sent. Gather what is small, the products and not the weight; and gather,
    because an `all_reduce` of columns beside zeros sends twice as much.
    """
    return x @ _joined(weight)


@wrong
def own_columns(x: Tensor, weight: Tensor) -> Tensor:
    """these are the columns of one rank. The other rank has the rest."""
    return x @ weight


@wrong
def along_the_rows(x: Tensor, weight: Tensor) -> Tensor:
    """the columns of the ranks are below each other here, because `all_gather_into_tensor` joins along the first
    dimension. They belong beside each other.
    """
    own = (x @ weight).contiguous()
    rows = own.new_empty(len(own) * distributed.get_world_size(), own.shape[1])
    distributed.all_gather_into_tensor(rows, own)
    return rows


@wrong
def reshaped(x: Tensor, weight: Tensor) -> Tensor:
    """these are the right numbers in wrong places. `view` keeps the order of the memory, in which the columns of a rank
    follow each other; a transpose, or `cat(dim=1)`, puts them beside each other.
    """
    own = (x @ weight).contiguous()
    rows = own.new_empty(len(own) * distributed.get_world_size(), own.shape[1])
    distributed.all_gather_into_tensor(rows, own)
    return rows.view(len(x), -1)
