"""Answers to the exercises of notebook 06: right ones in an unusual form, and wrong ones that are nearly right."""

import pytest
import torch
import torch.nn.functional as F
from answers import all_right, all_wrong

pytestmark = pytest.mark.virtual_gpus(2)


def within_a_hundredth(loss_of):
    scores, target = torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    for sizes in ([1, 3, 2], [0, 4, 2]):
        assert torch.allclose(loss_of(scores, target, sizes), F.cross_entropy(scores, target), atol=0.1)


def by_trying(limit, weights, states, row, ranks):
    held = weights * (3 + states)
    return ranks * max([0, *(rows for rows in range(limit) if held + rows * row <= limit)])


def piece_by_piece(blocks, together, entering, inside):
    pieces = [min(together, blocks - first) for first in range(0, blocks, together)]
    return len(pieces) * entering + max(pieces) * inside


RIGHT = [
    ("06.rows_that_fit", by_trying),
    ("06.recomputed", piece_by_piece),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("06.rows_that_fit", lambda limit, weights, states, row, ranks: limit // row * ranks, None),
    ("06.recomputed", lambda blocks, together, entering, inside: -(-blocks // together) * entering, None),
    ("06.same_loss", within_a_hundredth, None),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
