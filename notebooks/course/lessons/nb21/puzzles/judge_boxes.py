"""For each row of `overlaps`, a box of one name, best score first: "right", "wrong" or "ignored". `overlaps[i][k]` is
the overlap of box i and object k; `ignored[k]` says that object k does not count.
"""

from collections.abc import Sequence
from random import Random

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong

hints = (
    "First look for an object that counts, that nobody has found yet, and that the box overlaps by 0.5.",
    "Of several take the one with the largest overlap. If there is none, does the box fit an ignored object?",
    "An ignored object is never taken here: it excuses any number of boxes, as COCO's crowds do. (One that is "
    "ignored for its size excuses one box.)",
)


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


def _hidden(overlaps: Overlaps, ignored: Sequence[bool]) -> Overlaps:
    """Without the boxes that overlap an ignored object, so that they take nothing."""
    excused = [any(skip and overlap >= 0.5 for skip, overlap in zip(ignored, row, strict=True)) for row in overlaps]
    return [[0.0] * len(row) if out else row for row, out in zip(overlaps, excused, strict=True)]


def cases(random: Random) -> Sequence[Case]:
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


@wrong
def ignored_objects_left_out(overlaps: Overlaps, ignored: Sequence[bool]) -> list[str]:
    """this is what comes out when the ignored objects are left out. Then a box that is exactly on one of them is wrong,
    and a detector is punished for finding what is there.

    Source: the rule for difficult objects: M. Everingham et al., The PASCAL VOC Challenge, 2010, section 4.2
    """
    kept = [[0.0 if skip else overlap for overlap, skip in zip(row, ignored, strict=True)] for row in overlaps]
    return judge_boxes(kept, [False] * len(ignored))


@wrong
def ignored_objects_count(overlaps: Overlaps, ignored: Sequence[bool]) -> list[str]:
    """here ignored objects can be found. They count neither for nor against a detector.

    Source: the rule for difficult objects: M. Everingham et al., The PASCAL VOC Challenge, 2010, section 4.2
    """
    return judge_boxes(overlaps, [False] * len(ignored))


@wrong
def duplicates_count(overlaps: Overlaps, ignored: Sequence[bool]) -> list[str]:
    """here one object can be found twice. Then a detector gains by saying everything twice; COCO and PASCAL VOC count
    the second box as wrong.

    Source: M. Everingham et al., The PASCAL VOC Challenge, 2010, section 4.2
    """
    words = []
    for row in overlaps:
        fitting = [k for k, overlap in enumerate(row) if overlap >= 0.5]
        right = any(not ignored[k] for k in fitting)
        words.append("right" if right else "ignored" if fitting else "wrong")
    return words


@wrong
def the_nearest_object_alone(overlaps: Overlaps, ignored: Sequence[bool]) -> list[str]:
    """this is what comes out when only the object that a box overlaps most is looked at, also where that one is taken
    or ignored. COCO's rule goes on to the next one that the box overlaps by 0.5, and prefers one that counts.

    Source: pycocotools, `COCOeval.evaluateImg`, 2014: matched and ignored objects are passed over
    """
    free = [True] * len(ignored)
    words = []
    for row in overlaps:
        best = max(range(len(row)), key=lambda k: row[k])
        hit = row[best] >= 0.5
        words.append("ignored" if hit and ignored[best] else "right" if hit and free[best] else "wrong")
        free[best] = free[best] and not hit
    return words


@wrong
def the_first_that_fits(overlaps: Overlaps, ignored: Sequence[bool]) -> list[str]:
    """here a box takes the first object that fits. It prefers the one that it overlaps most, and leaves the others to
    the boxes behind it.
    """
    # The order of the objects decides, and not the overlap.
    return judge_boxes([[float(overlap >= 0.5) for overlap in row] for row in overlaps], ignored)


@wrong
def more_than_half(overlaps: Overlaps, ignored: Sequence[bool]) -> list[str]:
    """this is what comes of asking for more than 0.5. A box that overlaps by exactly 0.5 fits.

    Source: pycocotools, `COCOeval.evaluateImg`, 2014, passes over what lies below the threshold
    """
    return judge_boxes([[overlap if overlap > 0.5 else 0.0 for overlap in row] for row in overlaps], ignored)


@wrong
def ignored_objects_are_used_up(overlaps: Overlaps, ignored: Sequence[bool]) -> list[str]:
    """here an ignored object excuses one box. It may excuse any number of them, because nobody takes it.

    Source: pycocotools, `COCOeval.evaluateImg`, 2014, where a crowd is matched again and again
    """
    free, words = [True] * len(ignored), []
    for row in overlaps:
        fitting = [k for k, overlap in enumerate(row) if overlap >= 0.5 and free[k]]
        best = max(fitting, key=lambda k: (not ignored[k], row[k]), default=None)
        words.append("wrong" if best is None else "ignored" if ignored[best] else "right")
        if best is not None:
            free[best] = False
    return words


@wrong
def an_ignored_object_first(overlaps: Overlaps, ignored: Sequence[bool]) -> list[str]:
    """here a box is ignored because it overlaps an ignored object, also where it fits one that counts. What counts
    comes first, even where the overlap is smaller.

    Source: pycocotools, `COCOeval.evaluateImg`, 2014, sorts the ignored ones to the end
    """
    words = []
    for row, word in zip(overlaps, judge_boxes(_hidden(overlaps, ignored), ignored), strict=True):
        excused = any(skip and overlap >= 0.5 for skip, overlap in zip(ignored, row, strict=True))
        words.append("ignored" if excused else word)
    return words


@also(an_ignored_object_first)
def largest_of_free_and_ignored(overlaps: Overlaps, ignored: Sequence[bool]) -> list[str]:
    free, words = [True] * len(ignored), []
    for row in overlaps:
        fitting = [k for k, overlap in enumerate(row) if overlap >= 0.5 and free[k]]
        best = max(fitting, key=lambda k: row[k], default=None)
        words.append("wrong" if best is None else "ignored" if ignored[best] else "right")
        if best is not None and not ignored[best]:
            free[best] = False
    return words
