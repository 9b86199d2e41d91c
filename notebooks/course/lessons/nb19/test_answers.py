"""Answers to the exercises of notebook 19: right ones in an unusual form, and wrong ones that are nearly right."""

import numpy as np
import pytest
import torch
from answers import all_right, all_wrong
from torch.autograd import Function

from frcnn_lite import parallel

pytestmark = pytest.mark.virtual_gpus(2)


def by_hook(x):
    x.register_hook(lambda grad: grad.to("cuda:0"))
    return x * 1


class Checked(Function):
    """The helper of the notebook, called in backward, stops with its own sentence."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        parallel.same_device(grad=grad, weight=torch.zeros(1, device="cuda:0"))
        return grad * 2


class Announced(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        raise RuntimeError("expected device cuda:1 but got cuda:0")


class OfAnotherShape(Function):
    @staticmethod
    def forward(ctx, x):
        return x.sum(dim=1)

    @staticmethod
    def backward(ctx, grad):
        return grad.to("cuda:0")[:, None].expand(-1, 2)


class Arrays(Function):
    """Keeps an array and a device, and takes np.asarray."""

    @staticmethod
    def forward(ctx, x):
        ctx.array, ctx.device = np.asarray(x.detach().cpu()), x.device
        return torch.as_tensor(ctx.array**2, device=x.device)

    @staticmethod
    def backward(ctx, grad):
        return torch.as_tensor(2 * ctx.array * np.asarray(grad.cpu()), device=ctx.device)


class HalfWay(Arrays):
    @staticmethod
    def backward(ctx, grad):
        return 2 * torch.as_tensor(ctx.array, device=ctx.device) * grad


class Doubles(Arrays):
    @staticmethod
    def forward(ctx, x):
        return Arrays.forward(ctx, x).double()


RIGHT = [
    ("19.crime", by_hook),
    ("19.crime", lambda x: Checked.apply(x)),
    ("19.squared", lambda x: Arrays.apply(x)),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("19.crime", lambda x: Announced.apply(x), "other words"),
    ("19.crime", lambda x: OfAnotherShape.apply(x), None),
    ("19.squared", lambda x: HalfWay.apply(x), "without NumPy"),
    ("19.squared", lambda x: Doubles.apply(x), None),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
