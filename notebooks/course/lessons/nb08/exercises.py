"""Exercises of notebook 08: a sampler, one decision for all ranks, the rank that is missing."""

import random as python_random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import torch
from torch import distributed

from course.kit.learn.exercise import TODO, Case, Exercise, Mistake
from course.kit.ranks import RanksFailed, ranks
from frcnn_lite.parallel.watchdog import COLLECTIVES

LIMIT = 3.0  # seconds in a collective after which an answer counts as one that hangs


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
NO_SHUFFLE, RESEEDED = "no shuffle", "reseeded"
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


def _not_filled_up(pictures: int, world_size: int, rank: int, epoch: int) -> list[int]:
    return _shuffled(pictures, epoch)[rank::world_size]


def _dropped(pictures: int, world_size: int, rank: int, epoch: int) -> list[int]:
    return _shuffled(pictures, epoch)[: pictures // world_size * world_size][rank::world_size]


def _own_seed(pictures: int, world_size: int, rank: int, epoch: int) -> list[int]:
    order = _shuffled(pictures, 1000 * epoch + rank)
    return (order + order)[rank : pictures + -pictures % world_size : world_size]


def _unseeded(pictures: int, world_size: int, rank: int, epoch: int) -> list[int]:
    order = torch.randperm(pictures).tolist()
    return (order + order)[rank : pictures + -pictures % world_size : world_size]


def _no_epoch(pictures: int, world_size: int, rank: int, epoch: int) -> list[int]:
    return sample(pictures, world_size, rank, 0)


def _in_order(pictures: int, world_size: int, rank: int, epoch: int) -> list[int]:
    return [picture % pictures for picture in range(rank, pictures + -pictures % world_size, world_size)]


def _whole_epoch(pictures: int, world_size: int, rank: int, epoch: int) -> list[int]:
    return _shuffled(pictures, epoch)


def _rotated(pictures: int, world_size: int, rank: int, epoch: int) -> list[int]:
    return [(picture + epoch) % pictures for picture in _in_order(pictures, world_size, rank, epoch)]


def _reseeding(pictures: int, world_size: int, rank: int, epoch: int) -> list[int]:
    torch.manual_seed(epoch)
    order = torch.randperm(pictures).tolist() * world_size
    return order[rank : pictures + -pictures % world_size : world_size]


def _filled_up_once(pictures: int, world_size: int, rank: int, epoch: int) -> list[int]:
    order = _shuffled(pictures, epoch)
    order += order[: -pictures % world_size]
    return order[rank::world_size]


def _one_more_each(pictures: int, world_size: int, rank: int, epoch: int) -> list[int]:
    order = _shuffled(pictures, epoch)
    order += order[: world_size - pictures % world_size]
    return order[rank::world_size]


def _first_fault(fault: str, cases: Sequence[Case], given: Sequence[Any]) -> bool:
    faults = (one.fault for one in given if isinstance(one, Dealt))
    return next((found for found in faults if found), "") == fault


def _deal_cases(random: Random) -> Sequence[Case]:
    fixed = [(10, 4), (8, 2), (9, 2), (7, 1), (1, 4), (3, 8)]
    drawn = []
    for _ in range(8):
        world_size = random.randint(2, 8)
        drawn.append((random.randint(max(6, world_size), 40), world_size))
    return [_Deal(arguments) for arguments in [*fixed, *drawn]]


Wishes = Sequence[Sequence[bool]]
SOME_STEPS = "a collective in some steps and not in others"
NOT_SOLVED = "not solved"  # what a rank sends for `TODO`: a copy of that would not be known as one


def agreed(wish: bool) -> bool:
    stop = torch.tensor(float(wish)).cuda()  # noqa: FL001 the rank's own GPU is current
    distributed.all_reduce(stop)
    return stop.item() > 0


def _own_wish(wish: bool) -> bool:
    return wish


def _barrier_first(wish: bool) -> bool:
    distributed.barrier()
    return wish


def _when_all_agree(wish: bool) -> bool:
    stop = torch.tensor(float(wish)).cuda()  # noqa: FL001 the rank's own
    distributed.all_reduce(stop)
    return stop.item() == distributed.get_world_size()


def _rank_zero_decides(wish: bool) -> bool:
    stop = torch.tensor(float(wish)).cuda()  # noqa: FL001 the rank's own
    distributed.broadcast(stop, src=0)
    return stop.item() > 0


def _to_rank_zero(wish: bool) -> bool:
    stop = torch.tensor(float(wish)).cuda()  # noqa: FL001 the rank's own
    distributed.reduce(stop, 0)
    return stop.item() > 0 if distributed.get_rank() == 0 else wish


def _exactly_one(wish: bool) -> bool:
    stop = torch.tensor(float(wish)).cuda()  # noqa: FL001 the rank's own
    distributed.all_reduce(stop)
    return stop.item() == 1


def _only_with_a_wish(wish: bool) -> bool:
    if wish:
        stop = torch.ones(1).cuda()  # noqa: FL001 the rank's own
        distributed.all_reduce(stop)
        return stop.item() > 0
    return False


class _SomeSteps(RuntimeError):
    """An answer that calls a collective in one step and not in another one."""


class _Steps:
    """Notes in which steps of a rank the answer calls a collective, before it does: the call may never return."""

    def __init__(self) -> None:
        self.calls: list[bool] = []
        self.inside = False
        for name in COLLECTIVES:
            if (original := getattr(distributed, name, None)) is not None:
                setattr(distributed, name, partial(self._noted, original))

    def _noted(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self.inside:
            self.calls[-1] = True
            self._compare()
        return original(*args, **kwargs)

    def ask(self, stop: Callable[[bool], Any], wish: bool) -> Any:
        self.calls.append(False)
        self.inside = True
        try:
            answer = stop(wish)
        finally:
            self.inside = False
        self._compare()
        return answer

    def _compare(self) -> None:
        if len({*self.calls}) > 1:
            raise _SomeSteps


def _train(stop: Callable[[bool], Any], wishes: Wishes) -> Any:
    """What each rank does with an answer: in each step a sum of gradients, then the question whether to stop."""
    rank, steps = distributed.get_rank(), _Steps()
    for step, row in enumerate(wishes, 1):
        distributed.all_reduce(torch.ones(3).cuda())  # noqa: FL001 the rank's own
        try:
            answer = steps.ask(stop, row[rank])
        except NotImplementedError:
            answer = TODO
        if isinstance(answer, type(TODO)):
            return NOT_SOLVED
        if answer:
            return step
    return len(wishes)


class _OnRanks(Case):
    """Calls the answer on two ranks, in a loop. The result is the step after which each rank stopped."""

    def call(self, function: Callable[..., Any]) -> Any:
        (wishes,) = self.args
        try:
            stopped = ranks(len(wishes[0]), limit=LIMIT)(_train)(function, wishes)
        except RanksFailed as failed:
            if _SomeSteps.__name__ not in str(failed):
                raise
            return SOME_STEPS
        return TODO if NOT_SOLVED in stopped else stopped

    def show(self, name: str) -> str:
        (wishes,) = self.args
        return f"{name}(wish) on two ranks, with the wishes {' '.join(map(_told, wishes))}, step by step,"


def _in_some_steps(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return SOME_STEPS in given


def _told(wishes: Sequence[bool]) -> str:
    return "/".join("stop" if wish else "go" for wish in wishes)


def _wish_cases(random: Random) -> Sequence[Case]:
    """Few: each of them starts two processes."""
    fixed = [
        [[False, False], [False, True], [False, False], [True, True]],
        [[False, False], [True, False]],
        [[False, False], [True, True], [False, False]],
    ]
    drawn = [[random.random() < 0.3 for _ in range(2)] for _ in range(random.randint(3, 9))]
    return [_OnRanks((wishes,)) for wishes in [*fixed, drawn]]


Traces = Sequence[Sequence[tuple[int, bool]]]


def missing_ranks(traces: Traces) -> list[int]:
    waited_in = [number for trace in traces for number, completed in trace if not completed]
    if not waited_in:
        return []
    return [rank for rank, trace in enumerate(traces) if min(waited_in) not in dict(trace)]


def _those_that_wait(traces: Traces) -> list[int]:
    return [rank for rank, trace in enumerate(traces) if not all(completed for _, completed in trace)]


def _not_through(traces: Traces) -> list[int]:
    waited_in = [number for trace in traces for number, completed in trace if not completed]
    if not waited_in:
        return []
    return [rank for rank, trace in enumerate(traces) if not dict(trace).get(min(waited_in), False)]


def _that_do_not_wait(traces: Traces) -> list[int]:
    waiting = _those_that_wait(traces)
    return [rank for rank in range(len(traces)) if waiting and rank not in waiting]


def _by_length(traces: Traces) -> list[int]:
    waited_in = [number for trace in traces for number, completed in trace if not completed]
    return [rank for rank, trace in enumerate(traces) if waited_in and len(trace) < min(waited_in)]


def _shortest(traces: Traces) -> list[int]:
    return [rank for rank, trace in enumerate(traces) if len(trace) == min(map(len, traces))]


def _behind_the_furthest(traces: Traces) -> list[int]:
    furthest = max(len(trace) for trace in traces)
    return [rank for rank, trace in enumerate(traces) if len(trace) < furthest]


def _trace_cases(random: Random) -> Sequence[Case]:
    """A rank's trace is described by the last number that it has entered and the last one that it is through."""
    fixed = [
        ([(4, 3), (3, 3)], 1),  # as in the first cell of the notebook
        ([(4, 3), (4, 3), (3, 3), (4, 3)], 1),
        ([(4, 3), (6, 3), (3, 3), (5, 3)], 1),  # NCCL returns at once: a rank may have queued more than it waits in
        ([(3, 3), (3, 3)], 1),
        ([(1, 1), (1, 0), (0, 0)], 1),  # the source of a broadcast is through before the others
        ([(2002, 2001), (2001, 2001)], 2001),  # the recorder has dropped the beginning
    ]
    drawn = []
    for _ in range(20):
        through, first = random.randint(0, 5), random.choice([1, 1, 2001])
        ranks_of = []
        for _ in range(random.randint(2, 8)):
            done = through + random.choice([0, 0, 0, 1])
            ranks_of.append((done + random.choice([0, 0, 1, 1, 2, 3]), done))
        drawn.append(([(first + last - 1, first + done - 1) for last, done in ranks_of], first))
    return [
        Case(([[(number, number <= done) for number in range(first, last + 1)] for last, done in ranks_of],))
        for ranks_of, first in [*fixed, *drawn]
    ]


EXERCISES = (
    Exercise(
        key="08.sample",
        task="The pictures, numbers from 0, that this rank sees in this epoch, in order: equally many on each rank, "
        "each picture on some rank, and as few of them twice as possible; shuffled anew in each epoch, and the "
        "same list whenever it is asked for again. The generators of the program stay as they are.",
        reference=sample,
        cases=_deal_cases,
        agree=lambda given, expected: isinstance(given, Dealt) and not given.fault,
        hints=(
            "If all ranks shuffle the same list in the same way, they need not talk. From what can each of them seed "
            "its shuffle?",
            "`torch.randperm(pictures, generator=torch.Generator().manual_seed(epoch)).tolist()` is the same on every "
            "rank. Then each rank takes every `world_size`-th.",
            "Before that, make the length divisible: `order += order[: -pictures % world_size]`. With one picture and "
            "four ranks that has to happen more than once. Then return `order[rank::world_size]`.",
        ),
        mistakes=(
            Mistake(
                "every picture on each rank",
                "every rank gets all pictures here. Then the ranks do the same work, and nothing is faster: each "
                "sees its share of the epoch.",
                "asked about in openvla/openvla issue 125, 2024",
                answers=(_whole_epoch,),
                recognise=partial(_first_fault, ALL),
            ),
            Mistake(
                "uneven",
                "the ranks get different numbers of pictures here. Then one has a step more than the other and "
                "waits in it, as in the first cell of the notebook.",
                "m2lines/Samudra pull request 557, 2026",
                answers=(_not_filled_up, _filled_up_once),
                recognise=partial(_first_fault, UNEVEN),
            ),
            Mistake(
                "different when asked again",
                "the list is different when it is asked for again. A shuffle without a seed does so: each rank "
                "shuffles differently, and nobody can repeat the run. Seed a generator with what all ranks know.",
                answers=(_unseeded,),
                recognise=partial(_first_fault, NOT_AGAIN),
            ),
            Mistake(
                "left out",
                "pictures are left out where they do not divide, as under `drop_last=True`. Here some are taken a "
                "second time.",
                "lhotse-speech/lhotse pull request 695, 2022, repairs samplers that drop some",
                answers=(_dropped,),
                recognise=partial(_first_fault, LEFT_OUT),
            ),
            Mistake(
                "shuffled apart",
                "some pictures are seen twice and others never, as when the ranks shuffle differently from each "
                "other. The seed must not contain the rank.",
                "NVlabs/LongLive issue 71, 2026",
                answers=(_own_seed,),
                recognise=partial(_first_fault, APART),
            ),
            Mistake(
                "too many",
                "more pictures are repeated than need be. Where the ranks divide them, none is: `-pictures % "
                "world_size` is 0 then, and `world_size - pictures % world_size` is not.",
                answers=(_one_more_each,),
                recognise=partial(_first_fault, TOO_MANY),
            ),
            Mistake(
                "the same order",
                "both epochs have the same order. The seed has to contain the epoch: that is what `set_epoch` "
                "tells a `DistributedSampler`.",
                "cszn/KAIR pull request 106, 2021, repairs this",
                answers=(_no_epoch, _in_order),
                recognise=partial(_first_fault, SAME_ORDER),
            ),
            Mistake(
                "no shuffle",
                "the pictures come in steps of one size, so they are not shuffled: only the beginning moves.",
                answers=(_rotated,),
                recognise=partial(_first_fault, NO_SHUFFLE),
            ),
            Mistake(
                "the generator of all",
                "you changed the generator from which the whole program draws, as `torch.manual_seed` does. Dropout "
                "and augmentation then draw the same numbers in each epoch. Make a generator of your own.",
                answers=(_reseeding,),
                recognise=partial(_first_fault, RESEEDED),
            ),
        ),
    ),
    Exercise(
        key="08.agreed",
        task="Each rank calls `agreed(wish)` once in each step with its own wish to stop, a bool. It returns on every "
        "rank whether to stop: as soon as one of them wants to, all do.",
        reference=agreed,
        cases=_wish_cases,
        hints=(
            "Every rank has to know what the others wish, in every step. Which collective adds up what all have?",
            "`all_reduce` takes a tensor on the GPU: 1 for a wish to stop and 0 for none. What does a sum above 0 say?",
            "`stop = torch.tensor(float(wish)).cuda()`, `distributed.all_reduce(stop)`, and return `stop.item() > 0`.",
        ),
        mistakes=(
            Mistake(
                "each for itself",
                "this is what comes out when each rank stops when it wants to. The others go on into the next "
                "collective, and wait there.",
                "Lightning-AI/pytorch-lightning issue 379, 2019",
                answers=(_own_wish,),
            ),
            Mistake(
                "a collective under `if wish`",
                "you call the collective in some steps and not in others, such as under `if wish`. The ranks that "
                "do not wish to stop never come to it, so who does waits for them, or meets their next "
                "all_reduce.",
                answers=(_only_with_a_wish,),
                recognise=_in_some_steps,
            ),
            Mistake(
                "a barrier and no message",
                "this is what comes out when the ranks meet and the answer does not reach all of them. A barrier "
                "carries none, and `reduce` brings it to one rank alone.",
                "talmolab/sleap-nn pull request 471, 2026, repairs this",
                answers=(_barrier_first, _to_rank_zero),
            ),
            Mistake(
                "when all agree",
                "this is what comes out when the ranks go on until all of them want to stop. A NaN on one rank is "
                "not a wish of the others.",
                "IBM/ado pull request 41, 2025, stops so",
                answers=(_when_all_agree,),
            ),
            Mistake(
                "exactly one",
                "this is what comes out when the ranks stop where exactly one of them wants to. Two wishes "
                "are a wish, too.",
                answers=(_exactly_one,),
            ),
            Mistake(
                "rank 0 decides",
                "this is what comes out when rank 0 alone is asked. What a different rank has met is lost.",
                "ultralytics/yolov5 pull request 8345, 2022, where rank 0 alone validates and may decide",
                answers=(_rank_zero_decides,),
            ),
        ),
    ),
    Exercise(
        key="08.missing_ranks",
        task="`traces[r]` lists what rank r has entered: a pair `(number, completed)` for each collective. Return the "
        "ranks that never came to the earliest collective in which a rank waits; an empty list if none waits.",
        reference=missing_ranks,
        cases=_trace_cases,
        hints=(
            "A rank that waits has entered the collective. Whom does it wait for?",
            "The earliest collective that waits is the smallest number that is not completed, on any rank.",
            "With `first = min(number for trace in traces for number, completed in trace if not completed)`: the "
            "ranks whose trace has no pair with that number.",
        ),
        mistakes=(
            Mistake(
                "the ranks that wait",
                "these are the ranks that wait. They came; those that they wait for did not.",
                "what the log of a time-out names, asked about in NVIDIA/nccl issue 1260, 2024",
                answers=(_those_that_wait,),
            ),
            Mistake(
                "not through",
                "these are all ranks that are not through the collective. Those that wait in it are not through "
                "it either, and they came.",
                answers=(_not_through,),
            ),
            Mistake(
                "all that do not wait",
                "these are all ranks that do not wait. One that is through the collective does not wait either, and it "
                "came: the source of a broadcast may go on before the others.",
                answers=(_that_do_not_wait,),
            ),
            Mistake(
                "by the length",
                "these are the ranks whose list is shorter than the number of the collective. The recorder keeps the "
                "last collectives only, so a list need not begin with 1: look for the number itself.",
                answers=(_by_length,),
            ),
            Mistake(
                "the shortest list",
                "these are the ranks with the shortest list. Where nobody waits that is not a rank that is missing.",
                answers=(_shortest,),
            ),
            Mistake(
                "all that are behind the furthest",
                "these are all ranks that are behind the furthest one. With NCCL a rank can be further and not "
                "through: it has queued its next collectives, and waits in the same one as the others.",
                "verl-project/verl issue 1158, 2025, where the last work that is enqueued is 4489 and the one that is "
                "waited in 4486",
                answers=(_behind_the_furthest,),
            ),
        ),
    ),
)
