"""Return what the model has to get in place of `query`, a tensor of one row, so that no digit is lost."""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb00.cases import same_tensor

hints = (
    "The batch has ten rows, and so is cut into several pieces. How many rows must `query` have to be cut alike?",
    "`query.expand(...)` repeats a row without copying it. Its first argument is the number of rows.",
    "`return query.expand(len(digits), -1)`",
)


def a_row_for_each(query: Tensor, digits: Tensor) -> Tensor:
    """`query`, of shape (1, features), with a row for each row of `digits`."""
    return query.expand(len(digits), -1)


def cases(random: Random) -> Sequence[Case]:
    """Batches of several sizes, and every other query is trained."""
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    rows = [10, 3, 1, *(random.randint(2, 32) for _ in range(5))]
    return [
        Case((torch.rand(1, 5 + k, generator=generator).requires_grad_(k % 2 == 1), torch.zeros(n, 1, 8, 8)))
        for k, n in enumerate(rows)
    ]


agree = same_tensor


@wrong
def a_row_for_each_GPU(query, digits):
    """the number of rows is always the same here, whatever the batch is: the number of GPUs, or ten. Row i of `query`
    has to be there for digit i, so a batch of seven digits needs seven rows.

    Source: the repair of a post of December 2021
    """
    return query.expand(4, -1)


@also(a_row_for_each_GPU)
def _(query, digits):
    return query.expand(2, -1)


@also(a_row_for_each_GPU)
def _(query, digits):
    return query.expand(10, -1)


@wrong
def cuts_the_graph(query, digits):
    """the rows are right, but they have no graph, as after `detach` or `.data`, so a query that is trained would learn
    nothing.
    """
    return query.detach().expand(len(digits), -1)


@wrong
def the_query_as_it_is(query, digits):
    """this is `query` as it was. It still has one row, so it makes one piece, and one replica runs."""
    return query
