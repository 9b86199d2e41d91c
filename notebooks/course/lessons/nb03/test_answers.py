"""Answers to the exercises of notebook 03: right ones in an unusual form, and wrong ones that are nearly right."""

from functools import partial

import pytest
import torch
from answers import all_right, all_wrong

from course.lessons.nb03.puzzles.check_loss import all_rows_alike

pytestmark = pytest.mark.virtual_gpus(2)


RIGHT = [
    ("03.rank_loss", lambda sums, counts, rank: torch.tensor(len(sums) * sums[rank]) / max(1, sum(counts))),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("03.rank_loss", lambda s, c, r: sum(n > 0 for n in c) * s[r] / max(1, sum(c)), "only those that count"),
    ("03.rank_loss", lambda s, c, r: s[r] / max(1, sum(c) / len(c)), "at least one after the division"),
    ("03.rank_loss", lambda s, c, r: len(s) * s[r] / sum(max(1, n) for n in c), "at least one for each"),
    ("03.check_loss", partial(all_rows_alike, counts=(2, 3)), "all rows alike"),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
