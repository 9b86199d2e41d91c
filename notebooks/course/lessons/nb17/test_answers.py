"""Answers to the exercises of notebook 17: right ones in an unusual form, and wrong ones that are nearly right."""

import numpy as np
import pytest
from answers import all_right, all_wrong

from course.lessons.nb17.puzzles.collect import collect

pytestmark = pytest.mark.virtual_gpus(2)


def by_slices(index, features, images, rows, columns, values):
    r, c, i, j = np.unravel_index(index, (len(rows), features.shape[1], rows.shape[1], columns.shape[1]))
    part = features[images[r], c, slice(*rows[r, i].tolist()), slice(*columns[r, j].tolist())]
    values[index] = part.max() if part.numel() else 0


def from_minus_100(index, features, images, rows, columns, values):
    r, c, i, j = np.unravel_index(index, (len(rows), features.shape[1], rows.shape[1], columns.shape[1]))
    part = features[images[r], c, slice(*rows[r, i].tolist()), slice(*columns[r, j].tolist())]
    values[index] = max(-100.0, float(part.max())) if part.numel() else 0


def in_a_flat_memory(index, gradient, argmax, images, out):
    n, c, y, x = np.unravel_index(index, out.shape)
    own = (images == int(n))[:, None, None] & (argmax[:, c] == y * out.shape[3] + x)
    out.view(-1)[index] = gradient[:, c][own].sum()


def whole_numbers(index, gradient, argmax, images, out):
    collect(index, gradient, argmax, images, out)
    out.view(-1)[index] = int(out.view(-1)[index])


RIGHT = [
    ("17.thread", by_slices),
    ("17.collect", in_a_flat_memory),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("17.thread", from_minus_100, None),
    ("17.collect", whole_numbers, None),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
