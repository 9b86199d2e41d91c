"""Answers to the exercises of notebook 06: wrong ones that are nearly right."""

import pytest
import torch
import torch.nn.functional as F
from answers import all_wrong

pytestmark = pytest.mark.virtual_gpus(2)


def within_a_hundredth(loss_of):
    scores, target = torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    for sizes in ([1, 3, 2], [0, 4, 2]):
        assert torch.allclose(loss_of(scores, target, sizes), F.cross_entropy(scores, target), atol=0.1)


WRONG = [  # with the name of the mistake, None where it has none
    ("06.same_loss", within_a_hundredth, None),
]

test_nearly_right_is_wrong = all_wrong(WRONG)
