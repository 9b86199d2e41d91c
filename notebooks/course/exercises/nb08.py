"""Exercises of notebook 08: as many steps on each rank, one decision for all, the rank that is missing."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import torch
from torch import distributed

from course.learn.exercise import TODO, Case, Exercise, Mistake
from course.ranks import ranks

LIMIT = 3.0  # seconds in a collective after which an answer counts as one that hangs


def steps_of_each(pictures: int, batch_size: int, world_size: int, rank: int) -> int:
    fewest = pictures // world_size
    return -(-fewest // batch_size)


def _own_batches(pictures: int, batch_size: int, world_size: int, rank: int) -> int:
    return -(-len(range(rank, pictures, world_size)) // batch_size)


def _batches_of_one_process(pictures: int, batch_size: int, world_size: int, rank: int) -> int:
    return -(-pictures // batch_size)


def _deal_cases(random: Random) -> Sequence[Case]:
    fixed = [(9, 2, 2, 0), (9, 2, 2, 1), (8, 2, 2, 0), (3, 1, 4, 0), (3, 1, 4, 3), (1000, 8, 4, 2)]
    drawn = []
    for _ in range(25):
        world_size = random.randint(1, 8)
        drawn.append((random.randint(0, 99), random.randint(1, 6), world_size, random.randrange(world_size)))
    return [Case(arguments) for arguments in [*fixed, *drawn]]


Wishes = Sequence[Sequence[bool]]
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


def _train(stop: Callable[[bool], Any], wishes: Wishes) -> Any:
    """What each rank does with an answer: in each step a sum of gradients, then the question whether to stop."""
    rank = distributed.get_rank()
    for step, row in enumerate(wishes, 1):
        distributed.all_reduce(torch.ones(3).cuda())  # noqa: FL001 the rank's own
        try:
            answer = stop(row[rank])
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
        stopped = ranks(len(wishes[0]), limit=LIMIT)(_train)(function, wishes)
        return TODO if NOT_SOLVED in stopped else stopped

    def show(self, name: str) -> str:
        (wishes,) = self.args
        return f"{name}(wish) on two ranks, with the wishes {' '.join(map(_told, wishes))}, step by step,"


def _told(wishes: Sequence[bool]) -> str:
    return "/".join("stop" if wish else "go" for wish in wishes)


def _wish_cases(random: Random) -> Sequence[Case]:
    """Few: each of them starts two processes."""
    fixed = [[[False, False], [False, True], [False, False], [True, True]], [[False, False], [True, False]]]
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


def _behind_the_furthest(traces: Traces) -> list[int]:
    furthest = max(len(trace) for trace in traces)
    return [rank for rank, trace in enumerate(traces) if len(trace) < furthest]


def _trace_cases(random: Random) -> Sequence[Case]:
    fixed = [
        ([4, 3], 3),  # as in the first cell of the notebook
        ([4, 4, 3, 4], 3),
        ([4, 6, 3, 5], 3),  # NCCL returns at once: a rank may have queued more than the one it waits in
        ([3, 3], 3),
    ]
    drawn = []
    for _ in range(20):
        through, world_size = random.randint(0, 5), random.randint(2, 8)
        ahead = [random.choice([0, 0, 1, 1, 2, 3]) for _ in range(world_size)]
        drawn.append(([through + own - min(ahead) for own in ahead], through))
    return [
        Case(([[(number, number <= through) for number in range(1, last + 1)] for last in entered],))
        for entered, through in [*fixed, *drawn]
    ]


EXERCISES = (
    Exercise(
        key="08.steps_of_each",
        task="Rank r gets pictures r, r + world_size, ... in batches of batch_size, the last of which may be smaller. "
        "After how many steps does this rank end its epoch, so that no rank is left waiting?",
        reference=steps_of_each,
        cases=_deal_cases,
        hints=(
            "Every rank takes as many steps as the others. Which rank has the fewest pictures?",
            "The last rank has pictures // world_size; nobody has fewer.",
            "Divide that by batch_size, rounded up: `-(-fewest // batch_size)`.",
        ),
        mistakes=(
            Mistake(
                "its own batches",
                "you counted this rank's own batches. Where the pictures do not divide evenly, ranks then differ by a "
                "step, and the longer ones wait.",
                "m2lines/Samudra pull request 557, 2026",
                answers=(_own_batches,),
            ),
            Mistake(
                "the batches of one process",
                "you counted the batches of one process with all pictures. A rank has its share of them only.",
                "mead-ml/mead-baseline pull request 504, 2020, changes this",
                answers=(_batches_of_one_process,),
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
                "you let each rank stop when it wants to. The others go on into the next collective, and wait there.",
                "Lightning-AI/pytorch-lightning issue 379, 2019",
                answers=(_own_wish,),
            ),
            Mistake(
                "a barrier and no message",
                "you wait for the other ranks and then let each stop when it wants to. A barrier carries no answer.",
                "talmolab/sleap-nn pull request 471, 2026, repairs this",
                answers=(_barrier_first,),
            ),
            Mistake(
                "when all agree",
                "you wait until all ranks want to stop. A NaN on one rank is not a wish of the others.",
                "IBM/ado pull request 41, 2025, stops so",
                answers=(_when_all_agree,),
            ),
            Mistake(
                "rank 0 decides",
                "you asked rank 0 alone. What another rank has met is lost.",
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
                "you returned the ranks that wait. They came; those that they wait for did not.",
                "what the log of a time-out names, asked about in NVIDIA/nccl issue 1260, 2024",
                answers=(_those_that_wait,),
            ),
            Mistake(
                "all that are behind the furthest",
                "you returned every rank that is behind the furthest one. With NCCL a rank can be further and not "
                "through: it has queued its next collectives, and waits in the same one as the others.",
                "verl-project/verl issue 1158, 2025, where the last work that is enqueued is 4489 and the one that is "
                "waited in 4486",
                answers=(_behind_the_furthest,),
            ),
        ),
    ),
)
