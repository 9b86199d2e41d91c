"""Answers to the exercises of notebook 32: right ones in an unusual form, and wrong ones that are nearly right."""

import bisect

from answers import all_right, all_wrong


def by_bisect(names, differs):
    k = bisect.bisect_left(range(len(names)), True, key=lambda number: differs(names[number]))
    return names[k] if k < len(names) else None


def the_last_one_first(names, differs):
    if not differs(names[-1]):
        return None
    low, high = 0, len(names) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if differs(names[middle]) else (middle + 1, high)
    return names[high]


def by_recursion(names, differs):
    if len(names) < 2:
        return names[0] if names and differs(names[0]) else None
    half = len(names) // 2
    return by_recursion(names[:half], differs) if differs(names[half - 1]) else by_recursion(names[half:], differs)


def number_in_place_of_the_name(names, differs):
    found = by_bisect(names, differs)
    return None if found is None else names.index(found)


RIGHT = [
    ("32.first_difference", by_bisect),
    ("32.first_difference", the_last_one_first),
    ("32.first_difference", by_recursion),
]
WRONG = [  # with the name of the mistake, None where it has none
    (
        "32.fixed_window",
        lambda size, out: None if size % out > 1 else (size - (out - 1) * (size // out), size // out),
        None,
    ),
    ("32.first_difference", number_in_place_of_the_name, None),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
