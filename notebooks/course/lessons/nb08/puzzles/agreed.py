"""Each rank calls `agreed(wish)` once in each step with its own wish to stop, a bool. It returns on every rank whether
to stop: as soon as one of them wants to, all do.
"""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

import torch
from torch import distributed

from course.kit.learn.exercise import TODO, Case
from course.kit.learn.puzzle import also, wrong
from course.kit.rank_case import RankCase
from course.kit.ranks import RanksFailed, ranks
from frcnn_lite.parallel.watchdog import COLLECTIVES

hints = (
    "Every rank has to know what the others wish, in every step. Which collective adds up what all have?",
    "`all_reduce` takes a tensor on the GPU: 1 for a wish to stop and 0 for none. What does a sum above 0 say?",
    "`stop = torch.tensor(float(wish)).cuda()`, `distributed.all_reduce(stop)`, and return `stop.item() > 0`.",
)


LIMIT = 3.0  # seconds in a collective after which an answer counts as one that hangs
Wishes = Sequence[Sequence[bool]]
SOME_STEPS = "a collective in some steps and not in others"
NOT_SOLVED = "not solved"  # what a rank sends for `TODO`: a copy of that would not be known as one


def agreed(wish: bool) -> bool:
    stop = torch.tensor(float(wish)).cuda()  # noqa: FL001 the rank's own GPU is current
    distributed.all_reduce(stop)
    return stop.item() > 0


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


class _OnRanks(RankCase):
    """Calls the answer on two ranks, in a loop. The result is the step after which each rank stopped."""

    def on_ranks(self, function: Callable[..., Any]) -> Any:
        (wishes,) = self.args
        stopped = ranks(len(wishes[0]), limit=LIMIT)(_train)(function, wishes)
        return TODO if NOT_SOLVED in stopped else stopped

    def failed(self, failed: RanksFailed) -> Any:
        if _SomeSteps.__name__ not in str(failed):
            raise failed
        return SOME_STEPS

    def show(self, name: str) -> str:
        (wishes,) = self.args
        return f"{name}(wish) on two ranks, with the wishes {' '.join(map(_told, wishes))}, step by step,"


def _in_some_steps(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return SOME_STEPS in given


def _told(wishes: Sequence[bool]) -> str:
    return "/".join("stop" if wish else "go" for wish in wishes)


def cases(random: Random) -> Sequence[Case]:
    """Few: each of them starts two processes."""
    fixed = [
        [[False, False], [False, True], [False, False], [True, True]],
        [[False, False], [True, False]],
        [[False, False], [True, True], [False, False]],
    ]
    drawn = [[random.random() < 0.3 for _ in range(2)] for _ in range(random.randint(3, 9))]
    return [_OnRanks((wishes,)) for wishes in [*fixed, drawn]]


@wrong
def each_for_itself(wish: bool) -> bool:
    """this is what comes out when each rank stops when it wants to. The others go on into the next collective, and wait
    there.

    Source: Lightning-AI/pytorch-lightning issue 379, 2019
    """
    return wish


@wrong(recognise=_in_some_steps)
def a_collective_under_if_wish(wish: bool) -> bool:
    """you call the collective in some steps and not in others, such as under `if wish`. The ranks that do not wish to
    stop never come to it, so who does waits for them, or meets their next all_reduce.
    """
    if wish:
        stop = torch.ones(1).cuda()  # noqa: FL001 the rank's own
        distributed.all_reduce(stop)
        return stop.item() > 0
    return False


@wrong
def a_barrier_and_no_message(wish: bool) -> bool:
    """this is what comes out when the ranks meet and the answer does not reach all of them. A barrier carries none, and
    `reduce` brings it to one rank alone.

    Source: talmolab/sleap-nn pull request 471, 2026, repairs this
    """
    distributed.barrier()
    return wish


@also(a_barrier_and_no_message)
def to_rank_zero(wish: bool) -> bool:
    stop = torch.tensor(float(wish)).cuda()  # noqa: FL001 the rank's own
    distributed.reduce(stop, 0)
    return stop.item() > 0 if distributed.get_rank() == 0 else wish


@wrong
def when_all_agree(wish: bool) -> bool:
    """this is what comes out when the ranks go on until all of them want to stop. A NaN on one rank is not a wish of
    the others.

    Source: IBM/ado pull request 41, 2025, stops so
    """
    stop = torch.tensor(float(wish)).cuda()  # noqa: FL001 the rank's own
    distributed.all_reduce(stop)
    return stop.item() == distributed.get_world_size()


@wrong
def exactly_one(wish: bool) -> bool:
    """this is what comes out when the ranks stop where exactly one of them wants to. Two wishes are a wish, too."""
    stop = torch.tensor(float(wish)).cuda()  # noqa: FL001 the rank's own
    distributed.all_reduce(stop)
    return stop.item() == 1


@wrong
def rank_0_decides(wish: bool) -> bool:
    """this is what comes out when rank 0 alone is asked. What a different rank has met is lost.

    Source: ultralytics/yolov5 pull request 8345, 2022, where rank 0 alone validates and may decide
    """
    stop = torch.tensor(float(wish)).cuda()  # noqa: FL001 the rank's own
    distributed.broadcast(stop, src=0)
    return stop.item() > 0
