"""Answers to the exercises of notebook 05: right ones in an unusual form, and wrong ones that are nearly right."""

import copy

import pytest
import torch
from answers import all_right, all_wrong
from torch import nn

from course.lessons.nb05.puzzles.train import train

pytestmark = pytest.mark.virtual_gpus(2)


def loop_by_hand(model, inputs, steps):
    """No `parallel_apply`: one replica after the other, each with a backward over the count of both."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses, total = [], sum(len(boxes) for _, boxes in inputs)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = 0.0
        for k, replica in enumerate(nn.parallel.replicate(model, [0, 1])):
            with torch.cuda.device(k):
                part = replica(*inputs[k])[0].sum() / total
                part.backward()
            loss += part.item()
        optimizer.step()
        losses.append(loss)
    return losses


def two_models(model, inputs, steps):
    """DDP by hand: a second model that is kept equal by adding its gradients up and copying the weights back."""
    second = copy.deepcopy(model).to("cuda:1")
    losses, total = [], sum(len(boxes) for _, boxes in inputs)
    for _ in range(steps):
        loss, gradients = 0.0, []
        for net, (image, boxes) in zip((model, second), inputs, strict=True):
            with torch.cuda.device(net.box.weight.device):
                part = net(image, boxes)[0].sum() / total
            gradients.append(torch.autograd.grad(part, [*net.parameters()]))
            loss += part.item()
        with torch.no_grad():
            for weight, other, mine, its in zip(model.parameters(), second.parameters(), *gradients, strict=True):
                weight -= 0.1 * (mine + its.to("cuda:0"))
                other.copy_(weight)
        losses.append(loss)
    return losses


def without_replicas(model, inputs, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        outputs = [model(*arguments) for arguments in inputs]
        loss = sum(s.sum() for s, _ in outputs) / sum(c.sum() for _, c in outputs)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def cleared_before_the_step(model, inputs, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        outputs = nn.parallel.parallel_apply(nn.parallel.replicate(model, [0, 1]), inputs, devices=[0, 1])
        sums, counts = nn.parallel.gather(outputs, 0)
        loss = sums.sum() / counts.sum()
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
        losses.append(loss.item())
    return losses


def loss_by_loss(train, alone):
    for mine, right in zip(train(3), alone(3), strict=True):
        assert abs(mine - right) < 1e-4


def the_last_loss_alone(train, alone):
    assert train(2)[-1] == pytest.approx(alone(2)[-1])


def refuses_everything(train, alone):
    raise AssertionError


RIGHT = [
    ("05.check_training", loss_by_loss),
    ("05.check_training", the_last_loss_alone),
    ("05.train", loop_by_hand),
    ("05.train", two_models),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("05.check_training", lambda train, alone: torch.testing.assert_close(train(20)[0], alone(20)[0]), "never fails"),
    ("05.check_training", lambda train, alone: train(2), "never fails"),
    ("05.check_training", refuses_everything, "right programs fail"),
    ("05.train", without_replicas, "on one GPU"),
    ("05.train", cleared_before_the_step, "no step"),
    ("05.train", lambda model, inputs, steps: train(copy.deepcopy(model), inputs, steps), "a copy is not a replica"),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
