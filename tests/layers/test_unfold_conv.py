import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from frcnn_lite.layers import filter_matrix, fold, output_size, overlap_counts, unfold, unfold_conv2d

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}


@st.composite
def convolutions(draw):
    """Shapes and settings of a convolution whose window fits."""
    pair = lambda low, high: st.tuples(st.integers(low, high), st.integers(low, high))  # noqa: E731
    groups, kernel, dilation = draw(st.integers(1, 4)), draw(pair(1, 4)), draw(pair(1, 2))
    padding, stride = draw(pair(0, 2)), draw(pair(1, 3))
    size = tuple(
        draw(st.integers(max(1, d * (k - 1) + 1 - 2 * p), 9)) for k, d, p in zip(kernel, dilation, padding, strict=True)
    )
    channels = groups * draw(st.integers(1, 3)), groups * draw(st.integers(1, 3))
    return draw(st.integers(1, 3)), channels, size, kernel, stride, padding, dilation, groups


@given(convolutions(), st.sampled_from([torch.float32, torch.float64]), st.booleans(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_equal_to_conv2d_with_gradients(case, dtype, with_bias, channels_last):
    batch, (cin, cout), size, kernel, stride, padding, dilation, groups = case
    generator = torch.Generator().manual_seed(0)
    draw = lambda *shape: torch.randn(shape, generator=generator, dtype=dtype)  # noqa: E731
    x, weight = draw(batch, cin, *size), draw(cout, cin // groups, *kernel)
    if channels_last:
        x = x.to(memory_format=torch.channels_last)
    bias = draw(cout) if with_bias else None
    inputs = [t.requires_grad_() for t in (x, weight, bias) if t is not None]
    ours = unfold_conv2d(x, weight, bias, stride, padding, dilation, groups)
    theirs = F.conv2d(x, weight, bias, stride, padding, dilation, groups)
    close = {"rtol": TOLERANCE[dtype], "atol": 10 * TOLERANCE[dtype]}
    torch.testing.assert_close(ours, theirs, **close)
    seed = draw(*ours.shape)
    for a, b in zip(torch.autograd.grad(ours, inputs, seed), torch.autograd.grad(theirs, inputs, seed), strict=True):
        torch.testing.assert_close(a, b, **close)


@given(convolutions())
@settings(max_examples=40, deadline=None)
def test_unfold_and_fold_are_torchs(case):
    batch, (cin, _), size, kernel, stride, padding, dilation, _ = case
    settings_ = {"kernel_size": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    x = torch.randn(batch, cin, *size, dtype=torch.float64)
    columns = unfold(x, **settings_)
    assert torch.equal(columns, F.unfold(x, **settings_))
    assert columns.shape[2] == torch.tensor(output_size(size, **settings_)).prod()
    torch.testing.assert_close(fold(columns, size, **settings_), F.fold(columns, size, **settings_))
    torch.testing.assert_close(fold(columns, size, **settings_), x * overlap_counts(size, **settings_))


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
        (lambda: unfold(torch.zeros(3, 5, 5), 3), r"x: expected \(B, C, H, W\), got \(3, 5, 5\)"),
        (lambda: output_size((3, 3), 4), r"kernel_size: .*got \(4, 4\) with dilation \(1, 1\) on an image of \(3, 3\)"),
        (
            lambda: filter_matrix(torch.zeros(4, 1, 3, 3), 3),
            "groups: expected a divisor of the 4 output channels, got 3",
        ),
        (
            lambda: unfold_conv2d(torch.zeros(1, 6, 5, 5), torch.zeros(4, 4, 3, 3), groups=2),
            "x: expected 4 channels in each of 2 groups, 8 in all, got 6",
        ),
        (lambda: fold(torch.zeros(1, 9, 8), (5, 5), 3), r"columns: expected \(B, C \* 9, 9\) .* got \(1, 9, 8\)"),
    ],
)
def test_errors_name_what_came(call, words):
    with pytest.raises(ValueError, match=words):
        call()
