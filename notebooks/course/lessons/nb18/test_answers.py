"""Answers to the exercises of notebook 18: right ones in an unusual form, and wrong ones that are nearly right."""

import numpy as np
import pytest
import torch
from answers import all_right, all_wrong

from course.lessons.nb18.puzzles.class_weights import class_weights

pytestmark = pytest.mark.virtual_gpus(2)


def everything_an_array(function, scores, *others):
    arrays = [x.detach().cpu().numpy() if isinstance(x, torch.Tensor) else np.array(x) for x in (scores, *others)]
    return tuple(torch.from_numpy(array).to(scores.device) for array in function(*arrays))


def as_tensors(function, scores, *others):
    given = [np.asarray(x.detach().cpu()) if torch.is_tensor(x) else x for x in [scores, *others]]
    return [torch.as_tensor(array, device=scores.device) for array in function(*given)]


def four_classes(labels, classes):
    return class_weights(labels, 4)


def by_counts(labels, classes):
    counts = torch.bincount(labels, minlength=classes)
    weights = torch.ones_like(counts, dtype=torch.float32)
    if counts[0] and counts[1:].any():
        weights[0] = counts[1:].sum() / counts[0]
    return weights


RIGHT = [
    ("18.in_numpy", as_tensors),
    ("18.class_weights", by_counts),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("18.in_numpy", everything_an_array, "the others"),
    ("18.class_weights", four_classes, None),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
