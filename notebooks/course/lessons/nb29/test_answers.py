"""Answers to the exercises of notebook 29: right ones in an unusual form, and one that is nearly right."""

import torch
from answers import all_right, all_wrong
from torch import nn


def backwards(events):
    guilty, writes = {}, {}
    for position in reversed(range(len(events))):
        kind, name = events[position]
        if kind == "write":
            writes[name] = position
        elif kind == "save" and name in writes:
            guilty[position] = writes[name]
    return guilty


def by_hand(make):
    """Knows the right size and the right gradient."""
    layer = make().cuda()
    rows = torch.ones(8, 3).cuda()
    net = nn.DataParallel(layer, [0, 1])
    (net(2 * rows).sum() + net(6 * rows).sum()).backward()
    assert layer.size.item() == 3.5
    expected = 24 * (2 / 1 + 6 / 3.5)
    torch.testing.assert_close(layer.weight.grad.item(), expected, rtol=1e-5, atol=1e-5)


def three_calls(make):
    grads = []
    for together in (True, False):
        layer = make().cuda()
        net = nn.DataParallel(layer, [0, 1])
        losses = []
        for k in (1.0, 2.0, 4.0):
            losses.append(net(torch.full((6, 2), k).cuda()).mean())
            if not together:
                losses.pop().backward()
        if together:
            sum(losses).backward()
        if layer.size.item() <= 0.5:
            raise ValueError("lost")
        grads.append(layer.weight.grad.item())
    assert abs(grads[0] - grads[1]) < 1e-4


RIGHT = [("29.guilty_writes", backwards), ("29.check_scale", by_hand), ("29.check_scale", three_calls)]
WRONG = [("29.guilty_writes", lambda events: list(backwards(events).items()), None)]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
