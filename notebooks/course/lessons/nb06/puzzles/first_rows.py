"""The number of rows for the first GPU, 0 to `rows // gpus`, with which the fullest of `gpus` GPUs holds least: `row`
bytes for each row it computes, and `extra` on the first. Of equals the largest.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb06.balance import balanced_chunks

hints = (
    "Write the peak of the fullest GPU as a function of `first`.",
    "The first GPU holds `extra + own * row`, the others their rows times `row`. A row taken from the first "
    "goes to one of the others.",
    "Try all from `rows // gpus` down to 0 and take the one with the lowest peak.",
)


def first_rows(rows: int, gpus: int, row: int, extra: int) -> int:
    def fullest(first: int) -> int:
        own, *others = balanced_chunks(rows, gpus, first)
        return max(extra + own * row, max(others) * row)

    return min(range(rows // gpus, -1, -1), key=fullest)  # of equals min takes the first: the largest


def _of_cut_rows(rows: int, gpus: int, row: int, extra: int) -> float:
    """Where all GPUs would hold the same, if rows could be cut."""
    return rows / gpus - extra * (gpus - 1) / (gpus * row)


def _is_near_the_formula(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return all(abs(mine - max(0, _of_cut_rows(*case.args))) <= 1 for case, mine in zip(cases, given, strict=True))


def cases(random: Random) -> Sequence[Case]:
    fixed = [(60, 4, 640, 3200), (60, 4, 640, 0), (8, 3, 100, 100), (16, 2, 10, 500), (3, 8, 100, 100)]
    drawn = [
        (random.randint(8, 96), random.randint(2, 8), row := random.randint(10, 900), random.randint(0, 12) * row)
        for _ in range(25)
    ]
    return [Case(arguments) for arguments in fixed + drawn]


@wrong
def as_few_as_possible(rows: int, gpus: int, row: int, extra: int) -> int:
    """this is the number of rows of a first GPU that gets as few as possible. The others take over what it loses, and
    are the full ones now.

    Source: gpu0_bsz 1 of a batch of 158 in Link-Li/Balanced-DataParallel issue 13, 2021; 0 in issue 8, 2020
    """
    return min(1, rows // gpus)


@also(as_few_as_possible)
def none(rows: int, gpus: int, row: int, extra: int) -> int:
    return 0


@wrong
def even_shares(rows: int, gpus: int, row: int, extra: int) -> int:
    """this is the number of rows when all GPUs get the same. That is what DataParallel does.

    Source: the question of pytorch/pytorch issue 11730, 2018
    """
    return rows // gpus


@wrong
def where_the_rows_go(rows: int, gpus: int, row: int, extra: int) -> int:
    """this is the number of rows when the first GPU loses rows until its extra is made up for. The others take these
    rows over, and grow.
    """
    return rows // gpus - extra // row


@also(where_the_rows_go)
def others_do_not_grow_from_0(rows: int, gpus: int, row: int, extra: int) -> int:
    return max(0, rows // gpus - extra // row)


@also(where_the_rows_go)
def others_do_not_grow_rounded_up(rows: int, gpus: int, row: int, extra: int) -> int:
    return max(0, rows // gpus + -extra // row)


@wrong
def the_smaller_of_two(rows: int, gpus: int, row: int, extra: int) -> int:
    """this is the smallest of the numbers that reach the best peak. The largest is asked for: it leaves less work to
    the others.
    """

    def fullest(first: int) -> int:
        own, *others = balanced_chunks(rows, gpus, first)
        return max(extra + own * row, max(others) * row)

    return min(range(rows // gpus + 1), key=fullest)


@wrong(recognise=_is_near_the_formula)
def a_rounded_formula(rows: int, gpus: int, row: int, extra: int) -> int:
    """this is near the formula for rows that can be cut into pieces. Rows are whole: compare the peaks of the numbers
    around it.
    """
    return max(0, round(_of_cut_rows(rows, gpus, row, extra)))
