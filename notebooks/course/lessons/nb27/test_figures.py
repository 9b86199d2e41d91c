"""The figures of notebook 27: which tensor is in which group, and the losses of a range test."""

import pytest
import torch
from torch import nn

from course.lessons.nb27.coverage import coverage
from course.lessons.nb27.range_curves import range_curves


def test_coverage_counts_the_tensors_of_each_group_and_hatches_the_rest():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    some = torch.optim.SGD([{"params": net[1].weight}, {"params": net[0].parameters()}], lr=0.1)
    figure = coverage({"some": (net, some)}, "Who is where")
    assert figure.description == "some: of 4 tensors 1 in group 0, 2 in group 1, 1 in none."
    assert figure.markup.count("<path") == 1  # the hatching


def test_coverage_goes_by_objects():
    net = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net.load_state_dict({name: value.clone() for name, value in net.state_dict().items()}, assign=True)
    assert "2 in none" in coverage({"later": (net, optimizer)}, "Who is where").description


def test_coverage_wants_a_pair_and_no_more_groups_than_colours():
    many = torch.optim.SGD([{"params": nn.Parameter(torch.ones(1))} for _ in range(7)], lr=0.1)
    for pairs in ({}, {"many": (nn.Linear(1, 1), many)}):
        with pytest.raises(ValueError, match="can be told apart"):
            coverage(pairs, "Who is where")


def test_range_curves_names_the_losses_of_each_rate():
    figure = range_curves({"head": {0: 3.0, 0.1: 2.5, 0.01: 2.75}}, "Range test")
    assert figure.description == "head: loss 3.00 at rest, 2.75 at 0.01, 2.50 at 0.1."


@pytest.mark.parametrize(
    "losses", [{0.1: 1.0, 0.2: 1.0, 0.3: 1.0}, {0: 1.0, 0.1: 1.0}, {0: 1.0, 0.1: 1.0, 1: float("nan")}]
)
def test_range_curves_wants_a_rest_and_two_finite_losses(losses):
    with pytest.raises(ValueError, match="'head' needs finite losses at rate 0"):
        range_curves({"head": losses}, "Range test")
