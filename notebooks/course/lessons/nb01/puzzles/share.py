"""The first argument, of shape (1, ...), with a row for every row of `like`, without copying it."""

from collections.abc import Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong
from frcnn_lite import parallel

hints = (
    "`expand` makes a view; what should the first size be so that both arguments are cut into the same chunks?",
    "Not a number you choose: `len(like)`.",
    "`return x2.expand(len(like), *x2.shape[1:])`",
)


def cases(random: Random) -> Sequence[Case]:
    """Every other `x2` is trained, and one is on a GPU, where it has to stay."""
    shapes = [(1, 100, 200), (1, 7), (1,), (1, 3, 4, 5)]
    rows = [10, 4, 7, 10, *(random.randint(1, 32) for _ in range(8))]
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    cases = []
    for i, n in enumerate(rows):
        place = "cuda:1" if i == 5 else "cpu"
        x2 = torch.rand(shapes[i % 4], generator=generator).to(place)
        like = torch.zeros(n, 3)  # noqa: FL002 on the CPU
        cases.append(Case((x2.requires_grad_(i % 2 == 1),), {"like": like}))
    return cases


def _memory(tensor: Tensor) -> tuple[int, int]:
    return tensor.untyped_storage().data_ptr(), tensor.untyped_storage().nbytes()


def _same_view(given: object, expected: Tensor) -> bool:
    """Equal values in the memory of the one row, and gradients for it where it is trained."""
    return (
        isinstance(given, Tensor)
        and given.shape == expected.shape
        and torch.equal(given, expected)
        and _memory(given) == _memory(expected)
        and given.requires_grad == expected.requires_grad
    )


def _copies(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    """Right values everywhere, in memory of their own."""
    rights = [case.call(parallel.share) for case in cases]
    return all(
        isinstance(result, Tensor) and torch.equal(result, right) and _memory(result) != _memory(right)
        for result, right in zip(given, rights, strict=True)
    )


def _same_rows_always(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    """As many rows whatever `like` is: the number of GPUs, in whichever way it was written."""
    rows = {result.shape[0] for result in given if isinstance(result, Tensor) and result.dim()}
    return len(rows) == 1 and rows != {1}


share = parallel.share


agree = _same_view


@wrong(recognise=_same_rows_always)
def expands_to_the_number_of_GPUs(x2, like):
    """the number of rows is always the same here, whatever `like` is. If it is the number of GPUs, `y2` has a different
    number of rows on every machine, row i of `x1` has no row i of `x2`, and too small a number loses rows again.

    Source: the repair of the post of December 2021 in "Further reading"
    """
    return x2.expand(2, *x2.shape[1:])


@also(expands_to_the_number_of_GPUs)
def _(x2, like):
    return x2.expand(8, *x2.shape[1:])


@wrong(recognise=_copies)
def copies(x2, like):
    """the rows are right, and they are copies, as `repeat` or `clone` makes them. For ten rows of `table`, `repeat`
    takes 800,000 bytes, and `expand` no byte beyond the 80,000 of the one row.

    Source: the post of December 2021 in "Further reading" prefers `expand`, too
    """
    return x2.repeat(len(like), *[1] * (x2.dim() - 1))


@wrong
def cuts_the_graph(x2, like):
    """the view is right, but it has no graph, as after `detach` or `.data`: a table that is trained, such as an
    embedding, would learn nothing.
    """
    return parallel.share(x2.detach(), like=like)


@wrong
def expand_as(x2, like):
    """this is what `expand_as` gives. It takes *all* sizes from `like`, and you want one of them: its number of
    rows.
    """
    return x2.expand_as(like)
