"""How many of `gpus` GPUs get no row of a batch of `rows` rows (1 or more)?"""

from collections.abc import Sequence
from random import Random

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong

hints = (
    "Each GPU gets `ceil(rows / gpus)` rows until none are left.",
    "How many full or partial chunks of that size does the batch make?",
    "`size = -(-rows // gpus)`, then `return gpus - -(-rows // size)`",
)


def idle_gpus(rows: int, gpus: int) -> int:
    """How many of `gpus` GPUs get no row of a batch of `rows` rows, 1 or more."""
    size = -(-rows // gpus)  # rounded up: the rows of every chunk but the last
    return gpus - -(-rows // size)


def cases(random: Random) -> Sequence[Case]:
    fixed = [(10, 2), (10, 4), (9, 4), (10, 8), (5, 8), (1, 1)]
    return [Case(pair) for pair in fixed + [(random.randint(1, 64), random.randint(1, 8)) for _ in range(30)]]


@wrong
def only_when_rows_run_short(rows, gpus):
    """this is what a function gives that counts idle GPUs only where there are fewer rows than GPUs, as an even split
    would. 9 rows on 4 GPUs are not split into 3, 2, 2 and 2, but into 3, 3 and 3: one GPU is idle.

    Source: as in pytorch/pytorch issue 9226, 2018
    """
    return max(0, gpus - rows)


@wrong
def by_the_remainder(rows, gpus):
    """this is what the remainder gives. It tells how many *rows* are missing for equal chunks, not how many GPUs have
    none. 10 rows on 4 GPUs make chunks of 3, 3, 3 and 1, so no GPU is idle.
    """
    return (gpus - rows % gpus) % gpus


@also(by_the_remainder)
def _(rows, gpus):
    return gpus - rows % gpus
