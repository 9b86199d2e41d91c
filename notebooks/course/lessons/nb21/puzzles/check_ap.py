"""A test: `program(right, objects)` computes AP from a ranked list of True and False. Raise an AssertionError where its
result is not COCO's AP; two right programs may differ in the last bit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from course.kit.learn.exercise import Case, Ended, Trial
from course.kit.learn.puzzle import also, wrong

hints = (
    "On which list do the wrong programs differ from the right one? On a perfect list they all say 1.",
    "A wrong box must stand before a right one, and some objects must be missing at the end.",
    "`[False, True, True]` with 4 objects: the best precision is 2/3 at the recalls 0.00 to 0.50, which are 51 "
    "of 101, and 0 beyond them.",
)


def average_precision(right: Sequence[bool], objects: int) -> float:
    """COCO's AP of one class: `right` for each box, best score first over all pictures, of `objects` to find."""
    hits = np.cumsum(right)
    recall, precision = hits / objects, hits / np.arange(1, len(right) + 1)
    best = np.maximum.accumulate(precision[::-1])[::-1]  # at this recall or a larger one
    reached = np.searchsorted(recall, np.linspace(0, 1, 101))
    return float(np.append(best, 0.0)[reached].mean())


def _by_loops(right: Sequence[bool], objects: int) -> float:
    """The same, recall by recall from the right, so its sum may differ in the last bit."""
    total = 0.0
    for recall in np.linspace(0, 1, 101)[::-1]:  # 0.7 among them is a bit more than 7 / 10
        values, hits = [0.0], 0
        for rank, hit in enumerate(right, start=1):
            hits += hit
            if hits / objects >= recall:
                values.append(hits / rank)
        total += max(values) / 101
    return total


def _at_recalls(right: Sequence[bool], objects: int) -> float:
    hits = np.cumsum(right)
    recall, precision = hits / objects, hits / np.arange(1, len(right) + 1)
    return float(np.append(precision, 0.0)[np.searchsorted(recall, np.linspace(0, 1, 101))].mean())


def _at_hits(right: Sequence[bool], objects: int) -> float:
    precision = np.cumsum(right) / np.arange(1, len(right) + 1)
    return float(precision[np.array(right, dtype=bool)].sum() / objects)


def _sloping(right: Sequence[bool], objects: int) -> float:
    hits = np.cumsum(right)
    recall = np.concatenate([[0.0], hits / objects, [1.0]])
    precision = np.concatenate([[1.0], hits / np.arange(1, len(right) + 1), [0.0]])
    best = np.maximum.accumulate(precision[::-1])[::-1]
    return float(np.interp(np.linspace(0, 1, 101), recall, best).mean())


def _of_the_found(right: Sequence[bool], objects: int) -> float:
    return average_precision(right, max(sum(right), 1))


def _last_precision(right: Sequence[bool], objects: int) -> float:
    return sum(right) / len(right)


@dataclass(frozen=True)
class _Program:
    words: str
    compute: Callable[[Sequence[bool], int], float]

    def __call__(self, right: Sequence[bool], objects: int) -> float:
        return self.compute(list(right), objects)

    def __repr__(self) -> str:
        return f"<a program that {self.words}>"


_PROGRAMS = (
    _Program("reads the best precision at 101 recalls", average_precision),
    _Program("does the same in loops, from the last recall to the first", _by_loops),
    _Program("reads the precision as it is ranked", _at_recalls),
    _Program("adds up the precision at each right box", _at_hits),
    _Program("draws a line from point to point, and on to a recall of 1", _sloping),
    _Program("takes the boxes that were found for all objects", _of_the_found),
    _Program("returns the share of right boxes", _last_precision),
)


def check_ap(program: Callable[[Sequence[bool], int], float]) -> None:
    """Raises unless `program(right, objects)` is COCO's AP, on a list that begins wrong and misses some objects."""
    # The best precision is 2/3, at the recalls 0.00 to 0.50, of which there are 51; beyond them it is 0.
    assert abs(program([False, True, True], 4) - 51 * 2 / 3 / 101) < 1e-9


def _refuses_the_loops(cases: Sequence[Case], given: Sequence[object]) -> bool:
    """One right program passes, and the other does not."""
    ended = {case.args[0].compute: end for case, end in zip(cases, given, strict=True)}
    return ended[average_precision] == Ended(True) and ended[_by_loops] == Ended(False)


def cases(random: Random) -> Sequence[Case]:
    return [Trial((program,)) for program in random.sample(_PROGRAMS, len(_PROGRAMS))]


@wrong
def a_perfect_list(program: Callable[[Sequence[bool], int], float]) -> None:
    """this is how a test ends whose list has no wrong box and finds everything. Most of these programs say 1 there.

    Source: a program that takes no maximum and passes such a test: scikit-learn issue 30147, 2024
    """
    assert abs(program([True, True, True], 3) - 1) < 1e-9


@wrong
def everything_found(program: Callable[[Sequence[bool], int], float]) -> None:
    """this is how a test ends whose list finds every object. A program that takes what was found for all there is to
    find is right on such a list, and nobody notices what it does with objects that no box has found.

    Source: what lies beyond the last recall: ultralytics/yolov5 pull request 7714, 2022
    """
    right = [False, True, True, False, True]
    assert abs(program(right, 3) - average_precision(right, 3)) < 1e-9


@wrong
def the_wrong_ones_last(program: Callable[[Sequence[bool], int], float]) -> None:
    """this is how a test ends in whose list the precision is never higher at a right box than at the one before it.
    Then the best precision at this recall or a larger one is the one at this recall, and a program that takes no
    maximum passes. Begin the list with a wrong box.

    Source: a program that takes no maximum and passes such a test: scikit-learn issue 30147, 2024
    """
    right = [True, True, False, False]
    assert abs(program(right, 7) - average_precision(right, 7)) < 1e-9


@also(the_wrong_ones_last)
def falling(program: Callable[[Sequence[bool], int], float]) -> None:
    right = [True, False, True, False]
    assert abs(program(right, 5) - average_precision(right, 5)) < 1e-9


@wrong(recognise=_refuses_the_loops)
def bit_for_bit(program: Callable[[Sequence[bool], int], float]) -> None:
    """this test passes one right program and refuses the other, which adds in a different order. The last digits of a
    float depend on that order, so compare within a tolerance.
    """
    for right in ([False, True, True], [False, True, False, True, True]):
        assert program(right, 7) == average_precision(right, 7)


@wrong
def never_fails(program: Callable[[Sequence[bool], int], float]) -> bool:
    """this test lets every program pass, as one does that never raises anything. A test that *returns* False has
    passed; write `assert`.

    Source: pytest warns about tests that return something since version 7.2, 2022
    """
    return abs(program([False, True, True], 4) - average_precision([False, True, True], 4)) < 1e-9
