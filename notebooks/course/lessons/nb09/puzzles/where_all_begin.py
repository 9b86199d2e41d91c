"""`steps[r]` lists the steps of which rank `r` has a whole checkpoint file, in any order. Return the latest step from
which all ranks can go on, and 0 if there is none.
"""

from collections.abc import Sequence
from random import Random

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong

hints = (
    "A rank can go on from a step only if it has the file of that step.",
    "Which steps are in the list of every rank?",
    "`max(set.intersection(*map(set, steps)), default=0)`",
)


def where_all_begin(steps: Sequence[Sequence[int]]) -> int:
    return max(set.intersection(*map(set, steps)), default=0)


def cases(random: Random) -> Sequence[Case]:
    """Ranks that were ahead, ranks that kept few files, and some that have none at all."""
    fixed = [
        [[5, 10], [5, 10]],
        [[5, 10], [10, 5, 15]],
        [[15, 10, 5], [5, 15]],
        [[10, 15], [5, 10]],
        [[10], []],
        [[15], [10], [5, 10]],
        [[5, 10, 15], [15, 5], [10, 5]],
    ]
    drawn = [
        [random.sample(range(5, 50, 5), random.randint(0, 9)) for _ in range(random.randint(1, 4))] for _ in range(20)
    ]
    return [Case((steps,)) for steps in [*fixed, *drawn]]


@wrong
def the_latest_of_rank_0(steps: Sequence[Sequence[int]]) -> int:
    """this is the latest step of rank 0. Rank 0 may decide where all read the same file; here each has its own."""
    return max(steps[0], default=0)


@wrong
def the_latest_of_all(steps: Sequence[Sequence[int]]) -> int:
    """this is the latest step that any rank has. The ranks without that file cannot load it, and they would wait or
    start elsewhere.
    """
    return max((step for of_rank in steps for step in of_rank), default=0)


@wrong
def the_slowest(steps: Sequence[Sequence[int]]) -> int:
    """this is the latest step of the rank that is furthest behind. Another rank may have deleted or lost that file."""
    return min(max(of_rank, default=0) for of_rank in steps)


@also(the_slowest)
def the_slowest_that_has_one(steps: Sequence[Sequence[int]]) -> int:
    return min((max(of_rank) for of_rank in steps if of_rank), default=0)
