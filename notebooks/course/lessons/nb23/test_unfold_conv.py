"""Convolution by unfolding equals torch's, and fold and unfold are torch's own."""

import random

import pytest
import torch
from torch.nn import functional as F

from course.lessons.nb23.unfold_conv import filter_matrix, fold, output_size, overlap_counts, unfold, unfold_conv2d

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}


def convolution(seed):
    """Shapes and settings of a convolution whose window fits: batch, (in, out), size, and what `conv2d` takes."""
    draw = random.Random(seed)
    pair = lambda low, high: (draw.randint(low, high), draw.randint(low, high))  # noqa: E731
    groups, kernel, dilation, padding, stride = draw.randint(1, 4), pair(1, 4), pair(1, 2), pair(0, 2), pair(1, 3)
    least = [max(1, d * (k - 1) + 1 - 2 * p) for k, d, p in zip(kernel, dilation, padding, strict=True)]
    size = draw.randint(least[0], 9), draw.randint(least[1], 9)
    channels = groups * draw.randint(1, 3), groups * draw.randint(1, 3)
    return draw.randint(1, 3), channels, size, kernel, stride, padding, dilation, groups


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_equal_to_conv2d_with_gradients(seed, dtype):
    batch, (cin, cout), size, kernel, stride, padding, dilation, groups = convolution(seed)
    generator = torch.Generator().manual_seed(seed)
    draw = lambda *shape: torch.randn(shape, generator=generator, dtype=dtype)  # noqa: E731
    x, weight = draw(batch, cin, *size), draw(cout, cin // groups, *kernel)
    if seed % 2:
        x = x.to(memory_format=torch.channels_last)
    bias = draw(cout) if seed % 3 else None
    inputs = [t.requires_grad_() for t in (x, weight, bias) if t is not None]
    ours = unfold_conv2d(x, weight, bias, stride, padding, dilation, groups)
    theirs = F.conv2d(x, weight, bias, stride, padding, dilation, groups)
    close = {"rtol": TOLERANCE[dtype], "atol": 10 * TOLERANCE[dtype]}
    torch.testing.assert_close(ours, theirs, **close)
    seed_of_backward = draw(*ours.shape)
    ours_and_theirs = (torch.autograd.grad(out, inputs, seed_of_backward) for out in (ours, theirs))
    for a, b in zip(*ours_and_theirs, strict=True):
        torch.testing.assert_close(a, b, **close)


@pytest.mark.parametrize("seed", range(40))
def test_unfold_and_fold_are_torchs(seed):
    batch, (cin, _), size, kernel, stride, padding, dilation, _ = convolution(seed)
    settings = {"kernel_size": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    x = torch.randn(batch, cin, *size, dtype=torch.float64)
    columns = unfold(x, **settings)
    assert torch.equal(columns, F.unfold(x, **settings))
    assert columns.shape[2] == torch.tensor(output_size(size, **settings)).prod()
    torch.testing.assert_close(fold(columns, size, **settings), F.fold(columns, size, **settings))
    torch.testing.assert_close(fold(columns, size, **settings), x * overlap_counts(size, **settings))


def test_fold_is_the_transpose_of_unfold():
    x = torch.randn(1, 2, 6, 5, dtype=torch.float64)
    y = torch.randn(1, 2 * 9, 4 * 3, dtype=torch.float64)
    torch.testing.assert_close((unfold(x, 3) * y).sum(), (x * fold(y, (6, 5), 3)).sum())


@pytest.mark.parametrize(("size", "kernel"), [((7, 6), (3, 4)), ((5, 5), (5, 5)), ((4, 9), (1, 1))])
def test_counts_of_the_post(size, kernel):
    assert output_size(size, kernel) == (size[0] - kernel[0] + 1, size[1] - kernel[1] + 1)


def test_gradcheck():
    x = torch.randn(1, 4, 5, 4, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(2, 2, 3, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, b: unfold_conv2d(a, b, None, 2, 1, 1, 2), (x, weight))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: unfold(torch.zeros(3, 5, 5), 3), r"`x` must be \(B, C, H, W\), got \(3, 5, 5\)"),
        (
            lambda: output_size((3, 3), 4),
            r"`kernel_size` must be .*got \(4, 4\) with dilation \(1, 1\) on an image of \(3, 3\)",
        ),
        (
            lambda: filter_matrix(torch.zeros(4, 1, 3, 3), 3),
            "`groups` must divide the 4 output channels, got 3",
        ),
        (
            lambda: unfold_conv2d(torch.zeros(1, 6, 5, 5), torch.zeros(4, 4, 3, 3), groups=2),
            "`x` must have 4 channels in each of 2 groups, 8 in all, got 6",
        ),
        (lambda: fold(torch.zeros(1, 9, 8), (5, 5), 3), r"`columns` must be \(B, C \* 9, 9\) .* got \(1, 9, 8\)"),
    ],
)
def test_errors_name_what_came(call, words):
    with pytest.raises(ValueError, match=words):
        call()
