"""Answers to the exercises of notebook 09: right ones in an unusual form, and wrong ones that are nearly right."""

from collections import Counter

import numpy as np
import pytest
from answers import all_right, all_wrong

from course.lessons.nb09.puzzles.first_to_fail import first_to_fail

pytestmark = pytest.mark.virtual_gpus(2)


def by_weight(lines):
    """A follower has a word of a follower; the longer list of words a reader may write."""
    return any(w in lines for w in ("peer", "RemoteError", "Failed to recv", "operation timeout", "clients joined"))


def in_layers(reports):
    rest = [(rank, line) for rank, code, line in reports if code != -15 and not by_weight(line)]
    ((rank, _),) = rest
    return rank


RIGHT = [
    ("09.first_to_fail", in_layers),
    ("09.where_all_begin", lambda steps: max([s for s in steps[0] if all(s in own for own in steps)], default=0)),
    ("09.where_all_begin", lambda steps: next((s for s in range(50, 0, -1) if all(s in own for own in steps)), 0)),
    ("09.repeated_steps", lambda killed_in, every: range((killed_in - 1) // every * every + 1, killed_in)),
    ("09.repeated_steps", lambda killed_in, every: np.arange((killed_in - 1) // every * every + 1, killed_in)),
]
WRONG = [  # with the name of the mistake, None where it has none
    (
        "09.first_to_fail",
        lambda reports: next(i for i, r in enumerate(reports) if first_to_fail([*reports]) == r[0]),
        None,
    ),
    (
        "09.first_to_fail",
        lambda reports: next(r for r, c, s in reports if c not in (-6, -15) and s[:7] != "Runtime"),
        "every SIGABRT",
    ),
    (
        "09.first_to_fail",
        lambda reports: Counter(r for r, _, _ in reports).most_common()[-1][0],
        "the first in the list",
    ),
    ("09.where_all_begin", lambda steps: max(steps[-1], default=0), None),
    ("09.where_all_begin", lambda steps: max(set().union(*steps), default=0), "the latest of all"),
    ("09.repeated_steps", lambda k, every: [*range((k - 1) // every * every + 1, k + 1)], "the killed step"),
    ("09.repeated_steps", lambda k, every: [*range((k - 1) // every * every, k)], "the saved step again"),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
