"""Answers to the exercises of notebook 18: right ones in an unusual form, and wrong ones that are nearly right."""

import numpy as np
import pytest
import torch
from answers import all_right, all_wrong

pytestmark = pytest.mark.virtual_gpus(2)


def everything_an_array(function, scores, *others):
    arrays = [x.detach().cpu().numpy() if isinstance(x, torch.Tensor) else np.array(x) for x in (scores, *others)]
    return tuple(torch.from_numpy(array).to(scores.device) for array in function(*arrays))


def as_tensors(function, scores, *others):
    given = [np.asarray(x.detach().cpu()) if torch.is_tensor(x) else x for x in [scores, *others]]
    return [torch.as_tensor(array, device=scores.device) for array in function(*given)]


def two_calls_of_each(layer, right):
    """Raises by itself, in the place of an assertion, and asks the second GPU first."""
    for gpu in (1, 0):
        features, boxes = torch.rand(3, 2, 9, 9), torch.tensor([[[0.0, 0, 4, 4]], [[3, 3, 8, 8]], [[1, 0, 6, 7]]])
        out = layer(features.cuda(gpu), boxes.cuda(gpu))
        if out.get_device() != gpu or not torch.equal(out.cpu(), right(features, boxes)):
            raise RuntimeError(gpu)


RIGHT = [
    ("18.in_numpy", as_tensors),
    ("18.test_pool", two_calls_of_each),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("18.in_numpy", everything_an_array, "the others"),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
