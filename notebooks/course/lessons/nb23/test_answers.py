"""Answers to the exercises of notebook 23: right ones in an unusual form, and wrong ones that are nearly right."""

import torch
from answers import all_right, all_wrong
from torch.nn import functional as F


def by_loop(first, last, kernel, stride=1, padding=0, dilation=1):
    rows = [row * stride + tap * dilation - padding for row in range(first, last + 1) for tap in range(kernel)]
    return [min(rows), max(rows)]


def many_shapes(program):
    for rows in (6, 7, 11):
        for kernel in (1, 3, 5):
            grads = []
            for run in (program, lambda x, w: F.conv2d(x, w, padding=w.shape[2] // 2)):
                torch.manual_seed(0)
                picture, weight = torch.randn(2, 1, rows, 5).requires_grad_(), torch.randn(1, 1, kernel, kernel)
                out = run(picture, weight)
                out.pow(2).mean().backward()
                grads.append((out, picture.grad))
            for a, b in zip(*grads, strict=True):
                assert a.shape == b.shape and torch.allclose(a, b, atol=1e-5)


def by_gradcheck_and_output(program):
    picture = torch.randn(1, 1, 7, 3, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(1, 1, 5, 5, dtype=torch.float64)
    assert torch.allclose(program(picture, weight), F.conv2d(picture, weight, padding=2))
    assert torch.autograd.gradcheck(lambda x: program(x, weight), picture)


def even_and_small(program):
    picture, weight = torch.randn(1, 1, 8, 4, requires_grad=True), torch.randn(1, 1, 3, 3)
    out, right = program(picture, weight), F.conv2d(picture, weight, padding=1)
    torch.testing.assert_close(out, right)
    torch.testing.assert_close(*(torch.autograd.grad(o.square().sum(), picture)[0] for o in (out, right)))


RIGHT = [
    ("23.rows_needed", by_loop),
    ("23.check_halves", many_shapes),
    ("23.check_halves", by_gradcheck_and_output),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("23.rows_needed", lambda first, last, kernel, stride=1, padding=0, dilation=1: range(first, last + kernel), None),
    ("23.check_halves", even_and_small, "small filters"),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
