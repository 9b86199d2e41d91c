"""Statements in the prose of notebook 36 that no output shows, run again."""

import inspect

import pytest
import torch
from told import says
from torch import nn
from torch.distributed.pipelining import Schedule1F1B


def test_pytorch_divides_by_the_number_of_micro_batches():
    assert inspect.signature(Schedule1F1B).parameters["scale_grads"].default is True
    assert says("36", "(PyTorch's schedules do so: `scale_grads=True`.)")


@pytest.mark.parametrize("backward", [1, 2, 3])
def test_a_slow_backward_leaves_the_share_of_the_bubble(backward):
    stages, batches = 4, 8
    works = batches * (1 + backward)
    step = works + (stages - 1) * (1 + backward)  # the way of a first result there and back
    assert 1 - works / step == pytest.approx((stages - 1) / (batches + stages - 1))
    assert says("36", "That stretches the figure, and leaves the share of the bubble as it is.")


def test_normalisation_over_a_batch_depends_on_the_micro_batches():
    rows = torch.randn(8, 3)
    pieces = {norm: torch.cat([norm(some) for some in rows.chunk(4)]) for norm in (nn.BatchNorm1d(3), nn.LayerNorm(3))}
    assert [torch.allclose(norm(rows), by_pieces, atol=1e-5) for norm, by_pieces in pieces.items()] == [False, True]
    assert says("36", "Layer normalisation looks at each row alone and does not change.")


def test_the_numbers_of_the_answers():
    assert (8 - 1) / (8 + 8 - 1) == 7 / 15 and 7 / (56 + 7) == 1 / 9
    assert says("36", "7 / 15, nearly half of the step. With 56 it is 7 / 63, a ninth.")
