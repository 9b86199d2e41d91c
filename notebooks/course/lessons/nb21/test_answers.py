"""Answers to the exercises of notebook 21: right ones in an unusual form."""

import random

from answers import all_right

from course.lessons.nb21.puzzles.check_ap import average_precision


def judge_by_sorting(overlaps, ignored):
    taken, words = set(), []
    for row in overlaps:
        fits = sorted((k for k in range(len(row)) if row[k] >= 0.5), key=lambda k: (-row[k], -k))
        own = next((k for k in fits if not ignored[k] and k not in taken), None)
        taken.add(own)
        words.append("right" if own is not None else "ignored" if any(ignored[k] for k in fits) else "wrong")
    return words


def check_ap_on_many_lists(program):
    draws = random.Random(3)
    for objects in (10, 20, *range(5, 35)):
        right = [True] * (7 * objects // 10) + [draws.random() < 0.3 for _ in range(9)]
        while sum(right) > objects:
            right.pop()
        draws.shuffle(right)
        assert abs(program(right, objects) - average_precision(right, objects)) < 1e-6


def check_ap_of_seven_in_ten(program):
    """70 recalls have a box: 0.70 among the 101 is a bit more than 7 / 10."""
    assert abs(program([True] * 7, 10) - 70 / 101) < 1e-9
    assert abs(program([False, True, True], 4) - 51 * 2 / 3 / 101) < 1e-9


RIGHT = [
    ("21.judge_boxes", judge_by_sorting),
    ("21.check_ap", check_ap_on_many_lists),
    ("21.check_ap", check_ap_of_seven_in_ten),
]

test_right_in_an_unusual_form = all_right(RIGHT)
