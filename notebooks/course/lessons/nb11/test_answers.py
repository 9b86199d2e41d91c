"""Answers to the exercises of notebook 11: right ones in an unusual form, and wrong ones that are nearly right."""

import pytest
import torch
import torch.nn.functional as F
from answers import all_right, all_wrong
from torch import distributed

pytestmark = pytest.mark.virtual_gpus(2)


def by_gathered_parts(x, weight, bias):
    rank, size = distributed.get_rank(), distributed.get_world_size()
    mine = x.chunk(size, 1)[rank] @ weight.chunk(size, 1)[rank].T
    parts = [torch.empty_like(mine) for _ in range(size)]
    distributed.all_gather(parts, mine)
    return sum(parts) + bias


def half_of_everything(x, weight, bias):
    distributed.all_reduce(y := F.linear(x, weight))
    return y / 2 + bias


RIGHT = [
    ("11.row_parallel", by_gathered_parts),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("11.row_parallel", half_of_everything, "all columns"),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
