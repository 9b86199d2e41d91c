"""Answers to the exercises of notebook 10: right ones in an unusual form, and wrong ones that are nearly right."""

from math import ceil

import pytest
import torch
from answers import all_right, all_wrong
from torch import distributed

pytestmark = pytest.mark.virtual_gpus(2)


def from_all_reduce(whole):
    distributed.all_reduce(whole)
    return whole.chunk(distributed.get_world_size())[distributed.get_rank()]


def on_the_cpu(whole):
    return from_all_reduce(whole).cpu()


def over_a_list(whole):
    part = torch.empty_like(whole.chunk(2)[0])
    distributed.reduce_scatter(part, [*whole.chunk(2)])
    return part


def with_rows_of_zeros(build):
    net, optimizer = build()
    before = [parameter.full_tensor().clone() for parameter in net.parameters()]
    net(torch.zeros(2, 8, device="cuda")).square().sum().backward()
    optimizer.step()
    assert not any(new.full_tensor().equal(old) for new, old in zip(net.parameters(), before, strict=True))


def with_an_even_share(shapes, ranks):
    return ceil(16 * sum(rows * columns for rows, columns in shapes) / ranks) + 8 * max(r * c for r, c in shapes)


RIGHT = [
    ("10.reduce_scattered", from_all_reduce),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("10.reduce_scattered", on_the_cpu, None),
    ("10.reduce_scattered", over_a_list, "reduce scatter itself"),
    ("10.fullest_rank", with_an_even_share, "the average rank"),
    ("10.fullest_rank", lambda shapes, ranks: None, None),
    ("10.optimizer_trains", with_rows_of_zeros, "compared with itself"),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
