"""Answers to the exercises of notebooks 16 to 19 that a reader may give: right ones pass, wrong ones do not."""

import numpy as np
import pytest
import torch
from answers import assert_right, assert_wrong
from torch.autograd import Function

import vgpu
from course.lessons.nb17.puzzles.collect import collect
from course.lessons.nb18.puzzles.class_weights import class_weights
from frcnn_lite import ops, parallel


@pytest.fixture(autouse=True)
def two_gpus():
    with vgpu.virtual_gpus(2):
        yield


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


def by_slices(index, features, images, rows, columns, values):
    r, c, i, j = np.unravel_index(index, (len(rows), features.shape[1], rows.shape[1], columns.shape[1]))
    part = features[images[r], c, slice(*rows[r, i].tolist()), slice(*columns[r, j].tolist())]
    values[index] = part.max() if part.numel() else 0


def from_minus_100(index, features, images, rows, columns, values):
    r, c, i, j = np.unravel_index(index, (len(rows), features.shape[1], rows.shape[1], columns.shape[1]))
    part = features[images[r], c, slice(*rows[r, i].tolist()), slice(*columns[r, j].tolist())]
    values[index] = max(-100.0, float(part.max())) if part.numel() else 0


def in_a_flat_memory(index, gradient, argmax, images, out):
    n, c, y, x = np.unravel_index(index, out.shape)
    own = (images == int(n))[:, None, None] & (argmax[:, c] == y * out.shape[3] + x)
    out.view(-1)[index] = gradient[:, c][own].sum()


def whole_numbers(index, gradient, argmax, images, out):
    collect(index, gradient, argmax, images, out)
    out.view(-1)[index] = int(out.view(-1)[index])


def everything_an_array(function, scores, *others):
    arrays = [x.detach().cpu().numpy() if isinstance(x, torch.Tensor) else np.array(x) for x in (scores, *others)]
    return tuple(torch.from_numpy(array).to(scores.device) for array in function(*arrays))


def as_tensors(function, scores, *others):
    given = [np.asarray(x.detach().cpu()) if torch.is_tensor(x) else x for x in [scores, *others]]
    return [torch.as_tensor(array, device=scores.device) for array in function(*given)]


def four_classes(labels, classes):
    return class_weights(labels, 4)


def by_counts(labels, classes):
    counts = torch.bincount(labels, minlength=classes)
    weights = torch.ones_like(counts, dtype=torch.float32)
    if counts[0] and counts[1:].any():
        weights[0] = counts[1:].sum() / counts[0]
    return weights


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


ACCEPTED = [
    ("16.Largest", SetUp),
    ("16.Largest", Shared),
    ("16.test_pool", judged_by_the_operator),
    ("17.thread", by_slices),
    ("17.collect", in_a_flat_memory),
    ("18.in_numpy", as_tensors),
    ("18.class_weights", by_counts),
    ("19.crime", by_hook),
    ("19.crime", lambda x: Checked.apply(x)),
    ("19.squared", lambda x: Arrays.apply(x)),
]
REFUSED = [
    ("16.Largest", NoNegatives),
    ("16.test_pool", sum_of_the_gradient),
    ("17.thread", from_minus_100),
    ("17.collect", whole_numbers),
    ("18.in_numpy", everything_an_array),
    ("18.class_weights", four_classes),
    ("19.crime", lambda x: Announced.apply(x)),
    ("19.crime", lambda x: OfAnotherShape.apply(x)),
    ("19.squared", lambda x: HalfWay.apply(x)),
    ("19.squared", lambda x: Doubles.apply(x)),
]


@pytest.mark.parametrize(("key", "answer"), ACCEPTED)
def test_a_right_answer_is_accepted(key, answer):
    assert_right(key, answer)


@pytest.mark.parametrize(("key", "answer"), REFUSED)
def test_a_wrong_answer_is_refused(key, answer):
    assert_wrong(key, answer)
