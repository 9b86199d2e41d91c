"""The pictures, numbers from 0, that this rank sees in this epoch, in order: equally many on each rank, each picture on
some rank, and as few of them twice as possible; shuffled anew in each epoch, and the same list whenever it is asked
for again. The generators of the program stay as they are.
"""

import random as python_random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import torch

from course.kit.learn.exercise import TODO, Case
from course.kit.learn.puzzle import also, wrong

hints = (
    "If all ranks shuffle the same list in the same way, they need not talk. From what can each of them seed "
    "its shuffle?",
    "`torch.randperm(pictures, generator=torch.Generator().manual_seed(epoch)).tolist()` is the same on every "
    "rank. Then each rank takes every `world_size`-th.",
    "Before that, make the length divisible: `order += order[: -pictures % world_size]`. With one picture and "
    "four ranks that has to happen more than once. Then return `order[rank::world_size]`.",
)


@dataclass(frozen=True)
class Dealt:
    """What a sampler gives the ranks: epochs[e][rank] are pictures in order; again: epoch 0, asked a second time.

    draws: whether the next random numbers of the program are different from what they were before.
    """

    pictures: int
    epochs: list[list[list[int]]]
    again: list[list[int]]
    draws: bool

    @property
    def fault(self) -> str:
        """The first thing that is wrong with it, "" if nothing is."""
        every = set(range(self.pictures))
        for ranks_of in self.epochs:
            seen = [picture for own in ranks_of for picture in own]
            if len(ranks_of) > 1 and all(set(own) == every for own in ranks_of) and self.pictures > 1:
                return ALL
            if len({*map(len, ranks_of)}) > 1:
                return UNEVEN
            if self.again != self.epochs[0]:
                return NOT_AGAIN
            if set(seen) != every:
                return LEFT_OUT if len({*seen}) == len(seen) else APART
            if len(seen) >= self.pictures + len(ranks_of):
                return TOO_MANY
        if self.pictures >= MANY and self.epochs[0] == self.epochs[1]:
            return SAME_ORDER
        shares = len(self.epochs[0]) > 1 and self.pictures >= MANY
        if shares and all({*a} == {*b} for a, b in zip(*self.epochs, strict=True)):
            return OWN_SHARE
        if any(self._has_one_step(ranks_of) for ranks_of in self.epochs):
            return NO_SHUFFLE
        return RESEEDED if self.draws else ""

    def _has_one_step(self, ranks_of: list[list[int]]) -> bool:
        """Whether every rank goes on by the same number from picture to picture, round the whole."""
        steps = [(b - a) % self.pictures for own in ranks_of for a, b in pairwise(own)]
        return len(steps) >= MANY and len({*steps}) == 1

    def __repr__(self) -> str:
        if self.pictures > 12:
            counts = ", ".join(str(len(own)) for own in self.epochs[0])
            different = len({picture for own in self.epochs[0] for picture in own})
            return f"{counts} pictures on the ranks in epoch 0, {different} different ones"
        return " and ".join(f"{ranks_of} in epoch {epoch}" for epoch, ranks_of in enumerate(self.epochs))


ALL, UNEVEN, NOT_AGAIN = "all on each rank", "uneven", "different when asked again"


LEFT_OUT, APART, TOO_MANY, SAME_ORDER = "left out", "shuffled apart", "too many", "the same order"


NO_SHUFFLE, RESEEDED, OWN_SHARE = "no shuffle", "reseeded", "own share"


MANY = 6  # of so many pictures a shuffle is hardly the same twice, or in order


class _Deal(Case):
    """args: pictures and world_size. The function is asked for every rank in two epochs, and once more."""

    def call(self, function: Callable[..., Any]) -> Any:
        pictures, world_size = self.args
        before = _generators()
        asked = [[function(pictures, world_size, rank, epoch) for rank in range(world_size)] for epoch in (0, 1, 0)]
        if any(own is TODO for ranks_of in asked for own in ranks_of):
            return TODO
        numbers = [[[int(picture) for picture in own] for own in ranks_of] for ranks_of in asked]
        return Dealt(pictures, numbers[:2], numbers[2], _generators() != before)

    def show(self, name: str) -> str:
        pictures, world_size = self.args
        return f"{name}({pictures}, {world_size}, rank, epoch), asked for every rank,"


def _generators() -> tuple[Any, ...]:
    """The state of the generators that a whole program draws from."""
    return torch.get_rng_state().tolist(), python_random.getstate(), repr(np.random.get_state())


def sample(pictures: int, world_size: int, rank: int, epoch: int) -> list[int]:
    order = torch.randperm(pictures, generator=torch.Generator().manual_seed(epoch)).tolist()
    while len(order) % world_size:  # from the start once more, until the ranks divide them
        order += order[: -len(order) % world_size]
    return order[rank::world_size]


def _shuffled(pictures: int, seed: int) -> list[int]:
    return torch.randperm(pictures, generator=torch.Generator().manual_seed(seed)).tolist()


def _first_fault(fault: str, cases: Sequence[Case], given: Sequence[Any]) -> bool:
    faults = (one.fault for one in given if isinstance(one, Dealt))
    return next((found for found in faults if found), "") == fault


def cases(random: Random) -> Sequence[Case]:
    fixed = [(10, 4), (8, 2), (9, 2), (7, 1), (1, 4), (3, 8)]
    drawn = []
    for _ in range(8):
        world_size = random.randint(2, 8)
        drawn.append((random.randint(max(6, world_size), 40), world_size))
    return [_Deal(arguments) for arguments in [*fixed, *drawn]]


def agree(given: Any, expected: Any) -> bool:
    return isinstance(given, Dealt) and not given.fault


@wrong(recognise=partial(_first_fault, ALL))
def every_picture_on_each_rank(pictures: int, world_size: int, rank: int, epoch: int) -> list[int]:
    """every rank gets all pictures here. Then the ranks do the same work, and nothing is faster: each sees its share of
    the epoch.

    Source: asked about in openvla/openvla issue 125, 2024
    """
    return _shuffled(pictures, epoch)


@wrong(recognise=partial(_first_fault, UNEVEN))
def uneven_rows(pictures: int, world_size: int, rank: int, epoch: int) -> list[int]:
    """the ranks get different numbers of pictures here. Then one has a step more than the other and waits in it, as in
    the first cell of notebook 08.

    Source: m2lines/Samudra pull request 557, 2026
    """
    return _shuffled(pictures, epoch)[rank::world_size]


@also(uneven_rows)
def filled_up_once(pictures: int, world_size: int, rank: int, epoch: int) -> list[int]:
    order = _shuffled(pictures, epoch)
    order += order[: -pictures % world_size]
    return order[rank::world_size]


@wrong(recognise=partial(_first_fault, NOT_AGAIN))
def different_when_asked_again(pictures: int, world_size: int, rank: int, epoch: int) -> list[int]:
    """the list is different when it is asked for again. A shuffle without a seed does so: each rank shuffles
    differently, and nobody can repeat the run. Seed a generator with what all ranks know.
    """
    order = torch.randperm(pictures).tolist()
    return (order + order)[rank : pictures + -pictures % world_size : world_size]


@wrong(recognise=partial(_first_fault, LEFT_OUT))
def left_out(pictures: int, world_size: int, rank: int, epoch: int) -> list[int]:
    """pictures are left out where they do not divide, as under `drop_last=True`. Here some are taken a second time.

    Source: lhotse-speech/lhotse pull request 695, 2022, repairs samplers that drop some
    """
    return _shuffled(pictures, epoch)[: pictures // world_size * world_size][rank::world_size]


@wrong(recognise=partial(_first_fault, APART))
def shuffled_apart(pictures: int, world_size: int, rank: int, epoch: int) -> list[int]:
    """some pictures are seen twice and others never, as when the ranks shuffle differently from each other. The seed
    must not contain the rank.

    Source: NVlabs/LongLive issue 71, 2026
    """
    order = _shuffled(pictures, 1000 * epoch + rank)
    return (order + order)[rank : pictures + -pictures % world_size : world_size]


@wrong(recognise=partial(_first_fault, TOO_MANY))
def too_many(pictures: int, world_size: int, rank: int, epoch: int) -> list[int]:
    """more pictures are repeated than need be. Where the ranks divide them, none is: `-pictures % world_size` is 0
    then, and `world_size - pictures % world_size` is not.
    """
    order = _shuffled(pictures, epoch)
    order += order[: world_size - pictures % world_size]
    return order[rank::world_size]


@wrong(recognise=partial(_first_fault, SAME_ORDER))
def the_same_order(pictures: int, world_size: int, rank: int, epoch: int) -> list[int]:
    """both epochs have the same order. The seed has to contain the epoch: that is what `set_epoch` tells a
    `DistributedSampler`.

    Source: cszn/KAIR pull request 106, 2021, repairs this
    """
    return sample(pictures, world_size, rank, 0)


@also(the_same_order)
def in_order(pictures: int, world_size: int, rank: int, epoch: int) -> list[int]:
    return [picture % pictures for picture in range(rank, pictures + -pictures % world_size, world_size)]


@wrong(recognise=partial(_first_fault, OWN_SHARE))
def each_its_own_share(pictures: int, world_size: int, rank: int, epoch: int) -> list[int]:
    """each rank has the same pictures in every epoch, in a new order. Shuffle all pictures, and divide them afterwards:
    otherwise the same pictures always meet in a batch.
    """
    own = in_order(pictures, world_size, rank, epoch)
    return [own[k] for k in _shuffled(len(own), epoch)]


@wrong(recognise=partial(_first_fault, NO_SHUFFLE))
def no_shuffle(pictures: int, world_size: int, rank: int, epoch: int) -> list[int]:
    """the pictures come in steps of one size, so they are not shuffled: only the beginning moves."""
    return [(picture + epoch) % pictures for picture in in_order(pictures, world_size, rank, epoch)]


@wrong(recognise=partial(_first_fault, RESEEDED))
def the_generator_of_all(pictures: int, world_size: int, rank: int, epoch: int) -> list[int]:
    """you changed the generator from which the whole program draws, as `torch.manual_seed` does. Dropout and
    augmentation then draw the same numbers in each epoch. Make a generator of your own.
    """
    torch.manual_seed(epoch)
    order = torch.randperm(pictures).tolist() * world_size
    return order[rank : pictures + -pictures % world_size : world_size]
