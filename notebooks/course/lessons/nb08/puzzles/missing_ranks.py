"""`traces[r]` lists what rank r has entered: a pair `(number, completed)` for each collective. Return the ranks that
never came to the earliest collective in which a rank waits; an empty list if none waits.
"""

from collections.abc import Sequence
from random import Random

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong

hints = (
    "A rank that waits has entered the collective. Whom does it wait for?",
    "The earliest collective that waits is the smallest number that is not completed, on any rank.",
    "With `first = min(number for trace in traces for number, completed in trace if not completed)`: the "
    "ranks whose trace has no pair with that number.",
)


Traces = Sequence[Sequence[tuple[int, bool]]]


def missing_ranks(traces: Traces) -> list[int]:
    waited_in = [number for trace in traces for number, completed in trace if not completed]
    if not waited_in:
        return []
    return [rank for rank, trace in enumerate(traces) if min(waited_in) not in dict(trace)]


def cases(random: Random) -> Sequence[Case]:
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


@wrong
def the_ranks_that_wait(traces: Traces) -> list[int]:
    """these are the ranks that wait. They came; those that they wait for did not.

    Source: what the log of a time-out names, asked about in NVIDIA/nccl issue 1260, 2024
    """
    return [rank for rank, trace in enumerate(traces) if not all(completed for _, completed in trace)]


@wrong
def not_through(traces: Traces) -> list[int]:
    """these are all ranks that are not through the collective. Those that wait in it are not through it either, and
    they came.
    """
    waited_in = [number for trace in traces for number, completed in trace if not completed]
    if not waited_in:
        return []
    return [rank for rank, trace in enumerate(traces) if not dict(trace).get(min(waited_in), False)]


@wrong
def all_that_do_not_wait(traces: Traces) -> list[int]:
    """these are all ranks that do not wait. One that is through the collective does not wait either, and it came: the
    source of a broadcast may go on before the others.
    """
    waiting = the_ranks_that_wait(traces)
    return [rank for rank in range(len(traces)) if waiting and rank not in waiting]


@wrong
def by_the_length(traces: Traces) -> list[int]:
    """these are the ranks whose list is shorter than the number of the collective. The recorder keeps the last
    collectives only, so a list need not begin with 1: look for the number itself.
    """
    waited_in = [number for trace in traces for number, completed in trace if not completed]
    return [rank for rank, trace in enumerate(traces) if waited_in and len(trace) < min(waited_in)]


@wrong
def the_shortest_list(traces: Traces) -> list[int]:
    """these are the ranks with the shortest list. Where nobody waits that is not a rank that is missing."""
    return [rank for rank, trace in enumerate(traces) if len(trace) == min(map(len, traces))]


@wrong
def all_that_are_behind_the_furthest(traces: Traces) -> list[int]:
    """these are all ranks that are behind the furthest one. With NCCL a rank can be further and not through: it has
    queued its next collectives, and waits in the same one as the others.

    Source: verl-project/verl issue 1158, 2025, where the last work that is enqueued is 4489 and the one that is waited
    in 4486
    """
    furthest = max(len(trace) for trace in traces)
    return [rank for rank, trace in enumerate(traces) if len(trace) < furthest]
