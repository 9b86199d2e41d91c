"""Statements in the prose of notebook 27 that no output shows, run again."""

import pytest
import torch
from told import says
from torch import nn
from torch.optim import SGD
from torch.optim.lr_scheduler import LinearLR, MultiStepLR, PolynomialLR, SequentialLR
from torch.utils.data import DataLoader, DistributedSampler

from course.lessons.nb27.notes import rates_by_hand
from frcnn_lite.recipes import schedules


def test_an_optimizer_refuses_an_empty_list_and_accepts_an_empty_group():
    with pytest.raises(ValueError, match="empty parameter list"):
        SGD(filter(lambda p: False, nn.Linear(1, 1).parameters()), lr=0.1)
    SGD([{"params": []}, {"params": nn.Linear(1, 1).parameters()}], lr=0.1)
    assert says("27", "An optimizer refuses an empty list, and accepts an empty *group* beside a full one.")


def test_milestones_that_are_not_shifted_come_as_much_later_as_the_warm_up_is_long():
    def drops_at(milestones):
        def schedule(optimizer):
            parts = [LinearLR(optimizer, 0.1, total_iters=5), MultiStepLR(optimizer, milestones, gamma=0.2)]
            return SequentialLR(optimizer, parts, milestones=[5])

        rates = schedules.preview(schedule, {"all": 1.0}, 40)["all"]
        return [epoch for epoch in range(1, 40) if rates[epoch] < rates[epoch - 1]]

    assert drops_at([15, 25]) == [20, 30] and drops_at([20, 30]) == [25, 35]
    assert says("27", "Whoever forgets that gets them five epochs late.")


def test_by_hand_all_groups_get_the_base_rate():
    lines = rates_by_hand({"backbone": 0.01, "head": 0.1}, warmup=2, milestones=[4, 6], epochs=8)
    assert lines["backbone, by hand"] == lines["head, by hand"]
    assert lines["head, by hand"] == pytest.approx([0.02, 0.02, 0.1, 0.1, 0.02, 0.02, 0.004, 0.004])


def test_polynomial_stays_at_zero_for_any_number_of_groups():
    rates = schedules.preview(lambda optimizer: PolynomialLR(optimizer, 10, 0.9), {"a": 1.0, "b": 0.1, "c": 0.1}, 15)
    assert all(line[10:] == [0.0] * 5 for line in rates.values())
    assert says("27", "`PolynomialLR` stays at zero there, with any number of groups.")


def test_a_loader_with_a_sampler_counts_the_batches_of_its_rank():
    sampler = DistributedSampler(range(1472), num_replicas=4, rank=1)
    assert 3 * len(DataLoader(range(1472), batch_size=16, sampler=sampler)) == 69
    assert says("27", "Count from the loader, `epochs * len(loader)`")


def test_rate_zero_keeps_a_parameter_in_spite_of_weight_decay():
    weight = nn.Parameter(torch.ones(3))
    optimizer = SGD([weight], lr=0.0, weight_decay=0.5, momentum=0.9)
    for _ in range(3):
        weight.grad = torch.ones(3)
        optimizer.step()
    assert weight.equal(torch.ones(3)) and nn.utils.clip_grad_norm_([weight], 1.0) > 1
    assert says("27", "Its parameters stay, because SGD multiplies weight decay by the rate, too.")
