"""Exercises of notebook 01: the rule of scatter, what it loses, and how one row is shared with all."""

from collections.abc import Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor

from course.learn.exercise import Case, Exercise, Mistake
from frcnn_lite import parallel


def _even_split(rows: int, devices: int) -> list[int]:
    return [rows // devices + (k < rows % devices) for k in range(devices)]


def _even_split_without_zeros(rows: int, devices: int) -> list[int]:
    return [size for size in _even_split(rows, devices) if size]


def _one_chunk_per_device(rows: int, devices: int) -> list[int]:
    sizes = parallel.chunk_sizes(rows, devices)
    return sizes + [0] * (devices - len(sizes))


def _chunk_cases(random: Random) -> Sequence[Case]:
    fixed = [(10, 2), (10, 4), (9, 4), (10, 8), (36, 7), (5, 4), (1, 1)]
    return [Case(pair) for pair in fixed + [(random.randint(1, 64), random.randint(1, 8)) for _ in range(40)]]


def _count_rows(sizes: Sequence[int], devices: int) -> int:
    return max(0, sizes[0] - min(sizes))


def _lost_cases(random: Random) -> Sequence[Case]:
    fixed: list[tuple[list[int], int]] = [
        ([10, 1], 2),
        ([10, 3], 2),
        ([10, 3], 4),
        ([10, 2], 8),
        ([10, 10], 8),
        ([6], 4),
    ]
    drawn = [([random.randint(1, 32) for _ in range(random.randint(1, 3))], random.randint(1, 8)) for _ in range(40)]
    return [Case(pair) for pair in fixed + drawn]


def _share_cases(random: Random) -> Sequence[Case]:
    shapes = [(1, 100, 200), (1, 7), (1,), (1, 3, 4, 5)]
    rows = [10, 4, 7, 10, *(random.randint(1, 32) for _ in range(8))]
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    return [
        Case((torch.rand(shapes[i % 4], generator=generator),), {"like": torch.zeros(n, 3)}) for i, n in enumerate(rows)
    ]


def _same_view(given: object, expected: Tensor) -> bool:
    """Equal values that cost no memory beyond the one row."""
    return (
        isinstance(given, Tensor)
        and given.shape == expected.shape
        and torch.equal(given, expected)
        and given.untyped_storage().nbytes() == expected.untyped_storage().nbytes()
    )


def _copies(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    """Right values everywhere, in memory of their own."""
    return all(
        isinstance(result, Tensor) and torch.equal(result, case.call(parallel.share))
        for case, result in zip(cases, given, strict=True)
    )


def _same_rows_always(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    """As many rows whatever `like` is: the number of GPUs, in whichever way it was written."""
    rows = {result.shape[0] for result in given if isinstance(result, Tensor) and result.dim()}
    return len(rows) == 1 and rows != {1}


EXERCISES = (
    Exercise(
        key="01.chunk_sizes",
        task="Rows that each device receives of a tensor of `rows` rows (1 or more).",
        reference=parallel.chunk_sizes,
        cases=_chunk_cases,
        hints=(
            "All chunks but the last have one size. Which size needs no more chunks than there are devices?",
            "`ceil(rows / devices)`, which Python writes `-(-rows // devices)`.",
            "Walk through `range(0, rows, size)`; the last chunk is what is left, and some devices may get none.",
        ),
        mistakes=(
            Mistake(
                "even split",
                "you split evenly. torch cuts pieces of `ceil(rows / devices)` and gives the last device what is left, "
                "so that the sizes can differ by more than one.",
                "expected the same way in pytorch/pytorch pull request 930, 2017, and issue 18563, 2019",
                answers=(_even_split, _even_split_without_zeros),
            ),
            Mistake(
                "one chunk per device",
                "you made as many chunks as there are devices. torch stops when the rows are used up: "
                "9 rows on 4 GPUs make 3 chunks, and there is no empty fourth one.",
                "stated so in the post of this notebook, 2021",
                answers=(_one_chunk_per_device,),
            ),
        ),
    ),
    Exercise(
        key="01.rows_lost",
        task="Rows of the first argument that no replica sees, for positional tensors with these numbers of rows.",
        reference=parallel.rows_lost,
        cases=_lost_cases,
        hints=(
            "Cut every argument on its own first: you have the function for that.",
            "zip stops at the shortest list. Lists of what?",
            "The first argument's chunks from position `min(number of chunks)` on are lost: add up their sizes.",
        ),
        mistakes=(
            Mistake(
                "rows, not chunks",
                "you compared numbers of rows. zip walks over *chunks*: 3 rows against 10 on 2 GPUs are 2 chunks "
                "against 2, and nothing is lost.",
                "the illustration in the post of this notebook, 2021, zips single values and invites this",
                answers=(_count_rows,),
            ),
        ),
    ),
    Exercise(
        key="01.share",
        task="`x2` of shape (1, ...) with a row for every row of `like`, without copying it.",
        reference=parallel.share,
        cases=_share_cases,
        agree=_same_view,
        hints=(
            "`expand` makes a view; what should the first size be so that both arguments are cut into the same chunks?",
            "Not a number you choose: `len(like)`.",
            "`return x2.expand(len(like), *x2.shape[1:])`",
        ),
        mistakes=(
            Mistake(
                "expands to the number of GPUs",
                "you expanded to a fixed number of rows, such as the number of GPUs. Then `y2` has another number of "
                "rows on every machine, row i of `x1` has no row i of `x2`, and too small a number loses rows again.",
                "the repair in the post of this notebook, 2021",
                answers=(
                    lambda x2, like: x2.expand(2, *x2.shape[1:]),
                    lambda x2, like: x2.expand(8, *x2.shape[1:]),
                ),
                recognise=_same_rows_always,
            ),
            Mistake(
                "copies",
                "the rows are right, but each is a copy: `repeat` allocates memory for all of them, `expand` for none.",
                "the post of this notebook, 2021, rightly prefers `expand`",
                answers=(lambda x2, like: x2.repeat(len(like), *[1] * (x2.dim() - 1)),),
                recognise=_copies,
            ),
        ),
    ),
)
