"""Answers to the exercises of notebook 16: right ones in an unusual form, and wrong ones that are nearly right."""

import pytest
import torch
from answers import all_right, all_wrong
from torch.autograd import Function

from frcnn_lite import ops

pytestmark = pytest.mark.virtual_gpus(2)


class SetUp(Function):
    """In the newer form, with `setup_context`, and by a mask of one cell for each row."""

    @staticmethod
    def forward(x):
        return x.amax(dim=1, keepdim=True)

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,) = inputs
        ctx.save_for_backward(torch.nn.functional.one_hot(x.argmax(dim=1), x.shape[1]).bool())

    @staticmethod
    def backward(ctx, gradient):
        (mask,) = ctx.saved_tensors
        return torch.where(mask, gradient, 0)


class Shared(Function):
    """A gradient that several equal numbers share: a subgradient, too."""

    @staticmethod
    def forward(ctx, x):
        largest = x.amax(dim=1, keepdim=True)
        ctx.save_for_backward((x == largest) / (x == largest).sum(dim=1, keepdim=True))
        return largest

    @staticmethod
    def backward(ctx, gradient):
        (share,) = ctx.saved_tensors
        return share * gradient


class NoNegatives(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(torch.nn.functional.one_hot(x.argmax(dim=1), x.shape[1]))
        return x.clamp(min=0).amax(dim=1, keepdim=True)

    @staticmethod
    def backward(ctx, gradient):
        (mask,) = ctx.saved_tensors
        return mask * gradient


def judged_by_the_operator(pool, features, rois):
    """Compares with this project's pooling, which is right, and calls once more in between."""
    size = pool(features, rois).shape[-1]
    for weights in (torch.rand(len(rois), 1, size, size, dtype=torch.float64), None):
        pooled, right = pool(features, rois), ops.roi_pool(features, rois, size)
        pool(-features, rois)
        weights = torch.ones_like(pooled) if weights is None else weights
        found, wanted = (torch.autograd.grad((y * weights).sum(), features)[0] for y in (pooled, right))
        torch.testing.assert_close(found, wanted)


def sum_of_the_gradient(pool, features, rois):
    """Sees what is remembered; of the formula it sees that nothing is lost when the loss is a sum."""
    pooled = pool(features, rois)
    pool(-features, rois)
    (found,) = torch.autograd.grad(pooled.sum(), features)
    (alone,) = torch.autograd.grad(pool(features, rois).sum(), features)
    assert torch.equal(found, alone) and found.sum() == pooled.numel()


RIGHT = [
    ("16.Largest", SetUp),
    ("16.Largest", Shared),
    ("16.test_pool", judged_by_the_operator),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("16.Largest", NoNegatives, None),
    ("16.test_pool", sum_of_the_gradient, None),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
