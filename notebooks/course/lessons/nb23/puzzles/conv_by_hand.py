"""`F.conv2d(x, weight)`, stride 1, no padding, from `F.unfold` and a matrix product."""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor
from torch.nn import functional as F

from course.kit.learn.exercise import Case
from course.kit.learn.guarded import Guarded
from course.kit.learn.puzzle import wrong
from course.lessons.nb23.cases import close

hints = (
    "Lay each filter flat into a row; `F.unfold` has one column for each position.",
    "The product is (B, out, positions). The positions run row by row over an output you know the size of.",
    "`(weight.flatten(1) @ F.unfold(x, weight.shape[2:])).unflatten(2, (height, width))`",
)


def conv_by_hand(x: Tensor, weight: Tensor) -> Tensor:
    """`F.conv2d(x, weight)` for stride 1 without padding, from `F.unfold` and a matrix product."""
    filters = weight.flatten(1)  # (out, in * kh * kw), one filter a row
    out = filters @ F.unfold(x, weight.shape[2:])
    height, width = x.shape[2] - weight.shape[2] + 1, x.shape[3] - weight.shape[3] + 1
    return out.unflatten(2, (height, width))


def cases(random: Random) -> Sequence[Case]:
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    cases = []
    for _ in range(6):
        channels, filters = random.randint(2, 4), random.randint(2, 5)
        x = torch.randn(2, channels, random.randint(5, 9), random.randint(5, 9), generator=generator)
        weight = torch.randn(filters, channels, random.randint(2, 3), random.randint(2, 4), generator=generator)
        cases.append(Guarded((x, weight), forbidden="convolution"))
    return cases


agree = close


@wrong
def flips_the_filter(x, weight):
    """this is what the filter gives when it is turned around, as in mathematics. Deep learning's convolution does not
    turn it: it is a cross-correlation.

    Source: expected the same way in pytorch/pytorch issue 117534, 2024
    """
    return conv_by_hand(x, weight.flip(2, 3))


@wrong
def channels_last_in_the_filter_only(x: Tensor, weight: Tensor) -> Tensor:
    """this is the product of filter rows with the channels innermost and columns with the channels outermost, as
    `F.unfold` makes them. The shapes fit, the numbers do not.

    Source: the fault of huggingface/candle pull request 3405, 2026: one layout read as the other
    """
    filters = weight.permute(0, 2, 3, 1).flatten(1)
    out = filters @ F.unfold(x, weight.shape[2:])
    return out.unflatten(2, (x.shape[2] - weight.shape[2] + 1, -1))


@wrong
def asks_for_the_convolution(*given):
    """this is torch's own convolution. Write it out: every window a column, every filter a row."""
    return F.conv2d(*given)
