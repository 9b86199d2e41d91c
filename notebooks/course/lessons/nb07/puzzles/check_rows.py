"""A test for `program(rank, world_size, epoch)`, which returns the numbers of the rows, 0 to 11, that a rank sees in an
epoch. It passes when in each epoch the ranks together see every row once and the order is not that of the epoch
before, and raises an AssertionError otherwise.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

import torch
from torch.utils.data import DistributedSampler

from course.kit.learn.exercise import Case, Trial
from course.kit.learn.puzzle import also, wrong

hints = (
    "Two ranks and two epochs are enough. What holds within an epoch, and what between two of them?",
    "Within an epoch: join what both ranks see and sort it; it is 0 to 11. Do that for both epochs.",
    "Between them: `[program(0, 2, 0), program(1, 2, 0)] != [program(0, 2, 1), program(1, 2, 1)]`.",
)


ROWS = 12
Deal = Callable[[int, int, int], Sequence[int]]


@dataclass(frozen=True)
class Program:
    """Which of the twelve rows a rank sees in an epoch, in its order; a test calls it like a function."""

    name: str
    deal: Deal

    def __call__(self, rank: int, world_size: int, epoch: int) -> list[int]:
        return [int(row) for row in self.deal(rank, world_size, epoch)]

    def __repr__(self) -> str:
        return f"<program: {self.name}>"


def _sampled(rank: int, world_size: int, epoch: int, seed: int = 0) -> Sequence[int]:
    sampler: DistributedSampler[int] = DistributedSampler(range(ROWS), world_size, rank, seed=seed)  # type: ignore[arg-type]
    sampler.set_epoch(epoch)
    return list(sampler)


def _shuffled(epoch: int) -> list[int]:
    return torch.randperm(ROWS, generator=torch.Generator().manual_seed(epoch)).tolist()


def _in_blocks(rank: int, world_size: int, epoch: int) -> Sequence[int]:
    each = ROWS // world_size
    return _shuffled(epoch)[rank * each : (rank + 1) * each]


def _own_half(rank: int, world_size: int, epoch: int) -> Sequence[int]:
    return [row for row in _shuffled(epoch) if row % world_size == rank]


def _one_rank_forgets(who: int, rank: int, world_size: int, epoch: int) -> Sequence[int]:
    return _sampled(rank, world_size, 0 if rank == who else epoch)


def _rows_left_out(rank: int, world_size: int, epoch: int) -> Sequence[int]:
    return _sampled(rank, world_size, epoch)[:-1]


def cases(random: Random) -> Sequence[Case]:
    seed, who = random.randint(1, 999), random.randint(0, 1)
    right: dict[str, Deal] = {
        f"a sampler with the seed {seed} and set_epoch": partial(_sampled, seed=seed),
        "a shuffle for each epoch, cut into blocks": _in_blocks,
        "the same half on each rank, shuffled for each epoch": _own_half,
    }
    wrong: dict[str, Deal] = {
        "a sampler without set_epoch": lambda rank, world_size, epoch: _sampled(rank, world_size, 0),
        f"set_epoch on every rank but {who}": partial(_one_rank_forgets, who),
        "a seed of its own on each rank": lambda rank, world_size, epoch: _sampled(rank, world_size, epoch, seed=rank),
        "no sampler": lambda rank, world_size, epoch: _shuffled(epoch),
        "no shuffle": lambda rank, world_size, epoch: range(rank, ROWS, world_size),
        "the last row of each rank left out": _rows_left_out,
    }
    return [Trial((Program(name, deal),)) for name, deal in {**right, **wrong}.items()]


Call = Callable[[int, int, int], Sequence[int]]


def check_rows(program: Call) -> None:
    orders = []
    for epoch in (0, 1):
        dealt = [program(rank, 2, epoch) for rank in (0, 1)]
        assert sorted(dealt[0] + dealt[1]) == list(range(12)), "each row once, on one of the ranks"  # type: ignore[operator]
        orders.append(dealt)
    assert orders[0] != orders[1], "a new order in each epoch"


@wrong
def one_epoch(program: Call) -> None:
    """this is how a test ends that looks at one epoch. A forgotten set_epoch shows in the second.

    Source: what cszn/KAIR pull request 106, 2021, repairs: the same order in each epoch
    """
    assert sorted([*program(0, 2, 0), *program(1, 2, 0)]) == list(range(12))


@wrong
def the_order_alone(program: Call) -> None:
    """this is how a test ends that asks for a new order and not which rows the ranks see together. Ranks that see the
    same rows, or a rank that has missed set_epoch, pass it.

    Source: seeds that differed from rank to rank: NVlabs/LongLive issue 71, 2026
    """
    assert list(program(0, 2, 0)) != list(program(0, 2, 1))


@wrong
def as_sets(program: Call) -> None:
    """this is how a test ends that puts the rows into a `set`, which forgets how often each was there: two ranks that
    both see all twelve rows pass it. Sort the rows of both ranks, and compare the list.
    """
    for epoch in (0, 1):
        assert set(program(0, 2, epoch)) | set(program(1, 2, epoch)) == set(range(12))
    assert list(program(0, 2, 0)) != list(program(0, 2, 1))


@also(as_sets)
def as_sets_of_both(program: Call) -> None:
    orders = []
    for epoch in (0, 1):
        orders.append([program(0, 2, epoch), program(1, 2, epoch)])
        assert set(orders[-1][0]) | set(orders[-1][1]) == set(range(12))
    assert orders[0] != orders[1]


@wrong
def new_rows(program: Call) -> None:
    """this is how a test ends that wants other rows on a rank in the next epoch. A new order is asked for: a program in
    which each rank keeps its half and shuffles it anew is right.
    """
    for epoch in (0, 1):
        assert sorted([*program(0, 2, epoch), *program(1, 2, epoch)]) == list(range(12))
    assert set(program(0, 2, 0)) != set(program(0, 2, 1))


@wrong
def the_count_alone(program: Call) -> None:
    """this is how a test ends that counts rows and does not look which they are: two ranks that see the same six pass
    it.

    Source: mlcommons/training pull request 625, 2023: 20 to 30 percent of the rows on two workers
    """
    for epoch in (0, 1):
        assert len(program(0, 2, epoch)) == len(program(1, 2, epoch)) == 6
    assert program(0, 2, 0) != program(0, 2, 1)


@wrong
def every_row_on_every_rank(program: Call) -> None:
    """this is how a test ends that asks each rank for all rows, so it fails right programs. A rank sees its share of an
    epoch.

    Source: asked about in openvla/openvla issue 125, 2024: with two processes, each went through all batches
    """
    for epoch in (0, 1):
        assert sorted(program(0, 2, epoch)) == list(range(12))
    assert program(0, 2, 0) != program(0, 2, 1)


@wrong
def returned(program: Call) -> bool:
    """this is how a test ends that returns its comparison. A test that does not raise has passed: write `assert`.

    Source: pytest warns of it since 7.2, 2022: PytestReturnNotNoneWarning
    """
    return program(0, 2, 0) != program(0, 2, 1)
