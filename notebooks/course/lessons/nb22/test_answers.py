"""Answers to the exercises of notebook 22: right ones in an unusual form, and wrong ones that are nearly right."""

import math

import numpy as np
from answers import all_right, all_wrong

from course.lessons.nb22.puzzles.faults import faults


def culprits_by_numpy(sums, image_ids):
    bad = ~np.isfinite(np.array(list(sums.values()))).all(axis=0)
    return [one for one, broken in zip(image_ids, bad, strict=True) if broken]


def culprits_without_minus_infinity(sums, image_ids):
    rows = zip(image_ids, zip(*sums.values(), strict=True), strict=True)
    return [one for one, row in rows if any(math.isnan(x) or x == math.inf for x in row)]


def culprits_by_size(sums, image_ids):
    rows = zip(image_ids, zip(*sums.values(), strict=True), strict=True)
    return [one for one, row in rows if not all(abs(x) < 1e6 for x in row)]


def faults_with_a_set(annotated, image, objects, class_names):
    words, seen = [], set()
    if annotated and all(annotated) and tuple(annotated) != tuple(image):
        words.append("other size")
    words += [] if objects else ["empty"]
    for name, box in objects:
        x1, y1, x2, y2 = box
        inside = x1 >= -1 and y1 >= -1 and x2 <= image[0] + 1 and y2 <= image[1] + 1
        area = x1 < x2 and y1 < y2 and math.isfinite(sum(box))
        checks = ((name in class_names, "unknown class"), (area, "no area"), (inside, "outside"))
        word = next((word for fine, word in checks if not fine), "twice" if (name, box) in seen else None)
        words += [word] if word else []
        seen.add((name, box))
    return words


def faults_beside_the_last(annotated, image, objects, class_names):
    """Compares each object with the one before it alone."""
    words = faults(annotated, image, objects[:1], class_names)
    for k in range(1, len(objects)):
        alone = faults(None, image, objects[k : k + 1], class_names)
        words += alone or ["twice"] * (objects[k] == objects[k - 1])
    return words


def faults_of_two_zeros(annotated, image, objects, class_names):
    """Takes (0, 100) for the size of a picture."""
    size = None if annotated in (None, (0, 0)) else tuple(max(side, 1) for side in annotated)
    return faults(size, image, objects, class_names)


RIGHT = [
    ("22.culprits", culprits_by_numpy),
    ("22.faults", faults_with_a_set),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("22.culprits", culprits_without_minus_infinity, None),
    ("22.culprits", culprits_by_size, None),
    ("22.faults", faults_beside_the_last, None),
    ("22.faults", faults_of_two_zeros, None),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
