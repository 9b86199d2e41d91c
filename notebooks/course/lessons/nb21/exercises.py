"""Exercises of notebook 21: match boxes where some objects do not count, and the test for an average precision."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from course.kit.learn.exercise import Case, Ended, Exercise, Mistake, Trial

Overlaps = Sequence[Sequence[float]]


def judge_boxes(overlaps: Overlaps, ignored: Sequence[bool]) -> list[str]:
    """For each box, best score first, "right", "wrong" or "ignored"; overlaps[i][k] is that of box i and object k."""
    free = [not skip for skip in ignored]
    judged = []
    for row in overlaps:
        fitting = [k for k, overlap in enumerate(row) if overlap >= 0.5]
        open_ones = [k for k in fitting if free[k]]
        if open_ones:
            free[max(open_ones, key=lambda k: row[k])] = False
            judged.append("right")
        else:
            judged.append("ignored" if any(ignored[k] for k in fitting) else "wrong")
    return judged


def _without_ignored(overlaps: Overlaps, ignored: Sequence[bool]) -> list[str]:
    kept = [[0.0 if skip else overlap for overlap, skip in zip(row, ignored, strict=True)] for row in overlaps]
    return judge_boxes(kept, [False] * len(ignored))


def _counts_ignored(overlaps: Overlaps, ignored: Sequence[bool]) -> list[str]:
    return judge_boxes(overlaps, [False] * len(ignored))


def _duplicates_are_right(overlaps: Overlaps, ignored: Sequence[bool]) -> list[str]:
    words = []
    for row in overlaps:
        fitting = [k for k, overlap in enumerate(row) if overlap >= 0.5]
        right = any(not ignored[k] for k in fitting)
        words.append("right" if right else "ignored" if fitting else "wrong")
    return words


def _nearest_of_all(overlaps: Overlaps, ignored: Sequence[bool]) -> list[str]:
    free = [True] * len(ignored)
    words = []
    for row in overlaps:
        best = max(range(len(row)), key=lambda k: row[k])
        hit = row[best] >= 0.5
        words.append("ignored" if hit and ignored[best] else "right" if hit and free[best] else "wrong")
        free[best] = free[best] and not hit
    return words


def _first_that_fits(overlaps: Overlaps, ignored: Sequence[bool]) -> list[str]:
    """The order of the objects decides, and not the overlap."""
    return judge_boxes([[float(overlap >= 0.5) for overlap in row] for row in overlaps], ignored)


def _more_than_half(overlaps: Overlaps, ignored: Sequence[bool]) -> list[str]:
    return judge_boxes([[overlap if overlap > 0.5 else 0.0 for overlap in row] for row in overlaps], ignored)


def _uses_up(overlaps: Overlaps, ignored: Sequence[bool]) -> list[str]:
    free, words = [True] * len(ignored), []
    for row in overlaps:
        fitting = [k for k, overlap in enumerate(row) if overlap >= 0.5 and free[k]]
        best = max(fitting, key=lambda k: (not ignored[k], row[k]), default=None)
        words.append("wrong" if best is None else "ignored" if ignored[best] else "right")
        if best is not None:
            free[best] = False
    return words


def _ignored_first(overlaps: Overlaps, ignored: Sequence[bool]) -> list[str]:
    words = []
    for row, word in zip(overlaps, judge_boxes(_hidden(overlaps, ignored), ignored), strict=True):
        excused = any(skip and overlap >= 0.5 for skip, overlap in zip(ignored, row, strict=True))
        words.append("ignored" if excused else word)
    return words


def _hidden(overlaps: Overlaps, ignored: Sequence[bool]) -> Overlaps:
    """Without the boxes that overlap an ignored object, so that they take nothing."""
    excused = [any(skip and overlap >= 0.5 for skip, overlap in zip(ignored, row, strict=True)) for row in overlaps]
    return [[0.0] * len(row) if out else row for row, out in zip(overlaps, excused, strict=True)]


def _largest_of_free_and_ignored(overlaps: Overlaps, ignored: Sequence[bool]) -> list[str]:
    free, words = [True] * len(ignored), []
    for row in overlaps:
        fitting = [k for k, overlap in enumerate(row) if overlap >= 0.5 and free[k]]
        best = max(fitting, key=lambda k: row[k], default=None)
        words.append("wrong" if best is None else "ignored" if ignored[best] else "right")
        if best is not None and not ignored[best]:
            free[best] = False
    return words


def _overlap_cases(random: Random) -> Sequence[Case]:
    fixed: list[tuple[Overlaps, list[bool]]] = [
        ([[0.9], [0.8]], [False]),
        ([[0.9], [0.8]], [True]),
        ([[0.6, 0.8], [0.9, 0.1]], [False, True]),
        ([[0.7, 0.8], [0.6, 0.9]], [False, False]),
        ([[0.4, 0.3], [0.49, 0.5]], [False, True]),
        ([[0.6, 0.9], [0.7, 0.1]], [False, False]),
    ]
    drawn = []
    for _ in range(12):
        objects = random.randint(1, 4)
        # no two overlaps of a box are equal: which of them it takes is left open
        rows = [[k / 100 for k in random.sample(range(101), objects)] for _ in range(random.randint(1, 6))]
        drawn.append((rows, [random.random() < 0.4 for _ in range(objects)]))
    return [Case(pair) for pair in fixed + drawn]


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


def _perfect(program: Callable[[Sequence[bool], int], float]) -> None:
    assert abs(program([True, True, True], 3) - 1) < 1e-9


def _all_found(program: Callable[[Sequence[bool], int], float]) -> None:
    right = [False, True, True, False, True]
    assert abs(program(right, 3) - average_precision(right, 3)) < 1e-9


def _wrong_ones_last(program: Callable[[Sequence[bool], int], float]) -> None:
    right = [True, True, False, False]
    assert abs(program(right, 7) - average_precision(right, 7)) < 1e-9


def _falling(program: Callable[[Sequence[bool], int], float]) -> None:
    right = [True, False, True, False]
    assert abs(program(right, 5) - average_precision(right, 5)) < 1e-9


def _bit_for_bit(program: Callable[[Sequence[bool], int], float]) -> None:
    for right in ([False, True, True], [False, True, False, True, True]):
        assert program(right, 7) == average_precision(right, 7)


def _returns(program: Callable[[Sequence[bool], int], float]) -> bool:
    return abs(program([False, True, True], 4) - average_precision([False, True, True], 4)) < 1e-9


def _refuses_the_loops(cases: Sequence[Case], given: Sequence[object]) -> bool:
    """One right program passes, and the other does not."""
    ended = {case.args[0].compute: end for case, end in zip(cases, given, strict=True)}
    return ended[average_precision] == Ended(True) and ended[_by_loops] == Ended(False)


def _program_cases(random: Random) -> Sequence[Case]:
    return [Trial((program,)) for program in random.sample(_PROGRAMS, len(_PROGRAMS))]


EXERCISES = (
    Exercise(
        key="21.judge_boxes",
        task='For each row of `overlaps`, a box of one name, best score first: "right", "wrong" or "ignored". '
        "`overlaps[i][k]` is the overlap of box i and object k; `ignored[k]` says that object k does not count.",
        reference=judge_boxes,
        cases=_overlap_cases,
        hints=(
            "First look for an object that counts, that nobody has found yet, and that the box overlaps by 0.5.",
            "Of several take the one with the largest overlap. If there is none, does the box fit an ignored object?",
            "An ignored object is never taken: it may excuse any number of boxes.",
        ),
        mistakes=(
            Mistake(
                "ignored objects left out",
                "this is what comes out when the ignored objects are left out. Then a box that is exactly on one "
                "of them is wrong, and a detector is punished for finding what is there.",
                "the rule for difficult objects: M. Everingham et al., The PASCAL VOC Challenge, 2010, section 4.2",
                answers=(_without_ignored,),
            ),
            Mistake(
                "ignored objects count",
                "here ignored objects can be found. They count neither for nor against a detector.",
                "the rule for difficult objects: M. Everingham et al., The PASCAL VOC Challenge, 2010, section 4.2",
                answers=(_counts_ignored,),
            ),
            Mistake(
                "duplicates count",
                "here one object can be found twice. Then a detector gains by saying everything twice; COCO and "
                "PASCAL VOC count the second box as wrong.",
                "M. Everingham et al., The PASCAL VOC Challenge, 2010, section 4.2",
                answers=(_duplicates_are_right,),
            ),
            Mistake(
                "the nearest object alone",
                "this is what comes out when only the object that a box overlaps most is looked at, also where that "
                "one is taken or ignored. COCO's rule goes on to the next one that the box overlaps by 0.5, and "
                "prefers one that counts.",
                "pycocotools, `COCOeval.evaluateImg`, 2014: matched and ignored objects are passed over",
                answers=(_nearest_of_all,),
            ),
            Mistake(
                "the first that fits",
                "here a box takes the first object that fits. It prefers the one that it overlaps most, and leaves "
                "the others to the boxes behind it.",
                answers=(_first_that_fits,),
            ),
            Mistake(
                "more than half",
                "this is what comes of asking for more than 0.5. A box that overlaps by exactly 0.5 fits.",
                "pycocotools, `COCOeval.evaluateImg`, 2014, passes over what lies below the threshold",
                answers=(_more_than_half,),
            ),
            Mistake(
                "ignored objects are used up",
                "here an ignored object excuses one box. It may excuse any number of them, because nobody takes it.",
                "pycocotools, `COCOeval.evaluateImg`, 2014, where a crowd is matched again and again",
                answers=(_uses_up,),
            ),
            Mistake(
                "an ignored object first",
                "here a box is ignored because it overlaps an ignored object, also where it fits one that counts. "
                "What counts comes first, even where the overlap is smaller.",
                "pycocotools, `COCOeval.evaluateImg`, 2014, sorts the ignored ones to the end",
                answers=(_ignored_first, _largest_of_free_and_ignored),
            ),
        ),
    ),
    Exercise(
        key="21.check_ap",
        task="A test: `program(right, objects)` computes AP from a ranked list of True and False. Raise an "
        "AssertionError where its result is not COCO's AP; two right programs may differ in the last bit.",
        reference=check_ap,
        cases=_program_cases,
        hints=(
            "On which list do the wrong programs differ from the right one? On a perfect list they all say 1.",
            "A wrong box must stand before a right one, and some objects must be missing at the end.",
            "`[False, True, True]` with 4 objects: the best precision is 2/3 at the recalls 0.00 to 0.50, which are 51 "
            "of 101, and 0 beyond them.",
        ),
        mistakes=(
            Mistake(
                "a perfect list",
                "this is how a test ends whose list has no wrong box and finds everything. Most of these programs "
                "say 1 there.",
                "a program that takes no maximum and passes such a test: scikit-learn issue 30147, 2024",
                answers=(_perfect,),
            ),
            Mistake(
                "everything found",
                "this is how a test ends whose list finds every object. A program that takes what was found for all "
                "there is to find is right on such a list, and nobody notices what it does with objects that no box "
                "has found.",
                "what lies beyond the last recall: ultralytics/yolov5 pull request 7714, 2022",
                answers=(_all_found,),
            ),
            Mistake(
                "the wrong ones last",
                "this is how a test ends in whose list the precision is never higher at a right box than at the one "
                "before it. Then the best precision at this recall or a larger one is the one at this recall, and a "
                "program that takes no maximum passes. Begin the list with a wrong box.",
                "a program that takes no maximum and passes such a test: scikit-learn issue 30147, 2024",
                answers=(_wrong_ones_last, _falling),
            ),
            Mistake(
                "bit for bit",
                "this test passes one right program and refuses the other, which adds in a different order. The last "
                "digits of a float depend on that order, so compare within a tolerance.",
                answers=(_bit_for_bit,),
                recognise=_refuses_the_loops,
            ),
            Mistake(
                "never fails",
                "this test lets every program pass, as one does that never raises anything. A test that *returns* "
                "False has passed; write `assert`.",
                "pytest warns about tests that return something since version 7.2, 2022",
                answers=(_returns,),
            ),
        ),
    ),
)
