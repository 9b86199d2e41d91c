"""A test for `make()`, which gives a new layer with a buffer `size`, 0 at first, and a parameter `weight`, one number.
It raises where a layer loses its size on two GPUs, fails with two calls before a backward, or has a wrong gradient
without an error. It passes on right layers.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from course.kit.learn.exercise import Case, Program, Trial
from course.kit.learn.puzzle import also, wrong

Make = Callable[[], nn.Module]

hints = (
    "Two GPUs, two calls, and two numbers to look at: the size that was kept, and the gradient of the weight.",
    "Train two new layers under DataParallel: one with a backward after both calls, one with a backward after each.",
    "`assert layer.size != 0`, and `torch.testing.assert_close(both.weight.grad, one_by_one.weight.grad)`",
)


class _Scale(nn.Module):
    """Divides by the running size of its input. `keep(layer, new)` keeps it, and gives what to divide by."""

    size: Tensor

    def __init__(self, keep: Callable[[nn.Module, Tensor], Tensor], weight: float) -> None:
        super().__init__()
        self.keep, self.weight = keep, nn.Parameter(torch.tensor(weight))
        self.register_buffer("size", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        new = 0.5 * self.size + 0.5 * x.detach().abs().mean()
        return x * self.weight / self.keep(self, new)


def _use_new(layer, new):
    layer.size.copy_(new)
    return new


def _clone(layer, new):
    return layer.size.copy_(new).clone()


def _through_data(layer, new):
    layer.size.data.copy_(new)
    return new


def _assign(layer, new):
    layer.size = new
    return new


def _copy(layer, new):
    return layer.size.copy_(new)


def _data(layer, new):
    layer.size.data.copy_(new)
    return layer.size


def cases(random: Random) -> Sequence[Case]:
    weight = random.randint(1, 999) / 100
    programs = {
        "copy_, and divides by the new tensor": _use_new,
        "copy_, and divides by a clone": _clone,
        "written through .data, and divides by the new tensor": _through_data,
        "assigns the size": _assign,
        "copy_, and divides by the buffer": _copy,
        "written through .data, and divides by the buffer": _data,
    }
    return [
        Trial((Program(f"{words}; weight {weight}", lambda keep=keep: _Scale(keep, weight)),))
        for words, keep in programs.items()
    ]


def check_scale(make: Make) -> None:
    rows = torch.arange(1.0, 17.0).view(8, 2).cuda()
    both, one_by_one = make().cuda(), make().cuda()
    net = nn.DataParallel(both, [0, 1])
    (net(rows).sum() + net(3 * rows).sum()).backward()
    assert both.size != 0, "the size is kept on two GPUs"
    net = nn.DataParallel(one_by_one, [0, 1])
    for batch in (rows, 3 * rows):
        net(batch).sum().backward()
    torch.testing.assert_close(both.weight.grad, one_by_one.weight.grad)


def _gradients(make: Make, devices: Sequence[int]) -> list[Any]:
    found: list[Any] = []
    for together in (True, False):
        layer, rows = make().cuda(), torch.arange(1.0, 17.0).view(8, 2).cuda()
        net = nn.DataParallel(layer, list(devices))
        if together:
            (net(rows).sum() + net(3 * rows).sum()).backward()
        else:
            net(rows).sum().backward()
            net(3 * rows).sum().backward()
        found.append(layer.weight.grad)
    return found


@wrong
def the_size_on_two_gpus(make: Make) -> None:
    """this is how a test ends that runs on one GPU, or that compares gradients on two and does not look at the size. A
    layer that assigns its size passes it: there it begins each call at 0, so its gradients agree.
    """
    torch.testing.assert_close(*_gradients(make, [0]))
    layer = make().cuda()
    layer(torch.ones(2, 2).cuda())
    assert layer.size != 0


@also(the_size_on_two_gpus)
def gradients_alone(make: Make) -> None:
    torch.testing.assert_close(*_gradients(make, [0, 1]))


@wrong
def one_call(make: Make) -> None:
    """this is how a test ends that calls the layer once before backward. Nobody writes to what the first call saved, so
    layers that divide by the buffer pass it.
    """
    layer = make().cuda()
    nn.DataParallel(layer, [0, 1])(torch.ones(4, 2).cuda()).sum().backward()
    assert layer.size != 0


@wrong
def no_gradient(make: Make) -> None:
    """this is how a test ends that does not compare gradients. A write through `.data` raises nothing, so the layer
    that divides by such a buffer passes it.
    """
    layer = make().cuda()
    net = nn.DataParallel(layer, [0, 1])
    (net(torch.ones(4, 2).cuda()).sum() + net(torch.ones(4, 2).cuda()).sum()).backward()
    assert layer.size != 0


@wrong
def never_raises(make: Make) -> bool:
    """this is how a test ends that returns its comparison. A test that does not raise has passed: write `assert`."""
    return bool(make().cuda().size == 0)


@also(one_call)
def one_call_and_a_gradient(make: Make) -> None:
    layer = make().cuda()
    nn.DataParallel(layer, [0, 1])(torch.ones(4, 2).cuda()).sum().backward()
    assert layer.size != 0 and layer.weight.grad is not None


@wrong
def two_gpus_as_one(make: Make) -> None:
    """this is how a test ends that expects the gradient of one GPU on two. Each GPU measures the size of its own rows,
    so a right layer fails it, too. Compare two ways to train on the same two GPUs.
    """
    one, two = make().cuda(), make().cuda()
    rows = torch.arange(1.0, 17.0).view(8, 2).cuda()
    for layer, devices in ((one, [0]), (two, [0, 1])):
        net = nn.DataParallel(layer, devices)
        (net(rows).sum() + net(3 * rows).sum()).backward()
    torch.testing.assert_close(one.weight.grad, two.weight.grad)
