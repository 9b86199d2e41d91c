"""Exercises of notebook 23: how many positions, columns back into an image, and the convolution itself."""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor
from torch.nn import functional as F

from course.kit.learn.exercise import Case, Exercise, Mistake
from course.kit.learn.guarded import Guarded


def positions(size: int, kernel: int, stride: int = 1, padding: int = 0, dilation: int = 1) -> int:
    """Places at which the window fits along one side."""
    span = dilation * (kernel - 1) + 1
    return (size + 2 * padding - span) // stride + 1


def put_back(columns: Tensor, size: tuple[int, int], kernel: int) -> Tensor:
    """The image that `F.unfold(image, kernel)` was made of: every pixel the mean of its copies."""
    total = F.fold(columns, size, kernel)
    copies = F.fold(torch.ones_like(columns), size, kernel)
    return total / copies


def conv_by_hand(x: Tensor, weight: Tensor) -> Tensor:
    """`F.conv2d(x, weight)` for stride 1 without padding, from `F.unfold` and a matrix product."""
    filters = weight.flatten(1)  # (out, in * kh * kw), one filter a row
    out = filters @ F.unfold(x, weight.shape[2:])
    height, width = x.shape[2] - weight.shape[2] + 1, x.shape[3] - weight.shape[3] + 1
    return out.unflatten(2, (height, width))


def _position_cases(random: Random) -> Sequence[Case]:
    fixed = [(8, 3), (8, 3, 2), (8, 3, 2, 1), (64, 3, 2, 1, 2), (6, 3, 1, 0, 2), (9, 4, 3, 2, 2), (1, 1)]
    drawn = [
        (random.randint(16, 64), random.randint(1, 5), random.randint(1, 3), random.randint(0, 3), random.randint(1, 3))
        for _ in range(30)
    ]
    return [Case(case) for case in [*fixed, *drawn]]


def _put_back_cases(random: Random) -> Sequence[Case]:
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    cases = []
    for _ in range(8):
        size, kernel = (random.randint(5, 9), random.randint(5, 9)), random.randint(2, 4)
        image = torch.rand(2, random.randint(1, 3), *size, generator=generator)
        cases.append(Guarded((F.unfold(image, kernel), size, kernel)))
    return cases


def _conv_cases(random: Random) -> Sequence[Case]:
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    cases = []
    for _ in range(6):
        channels, filters = random.randint(2, 4), random.randint(2, 5)
        x = torch.randn(2, channels, random.randint(5, 9), random.randint(5, 9), generator=generator)
        weight = torch.randn(filters, channels, random.randint(2, 3), random.randint(2, 4), generator=generator)
        cases.append(Guarded((x, weight), forbidden="convolution"))
    return cases


def _close(given: object, expected: Tensor) -> bool:
    return (
        isinstance(given, Tensor)
        and given.shape == expected.shape
        and torch.allclose(given, expected, rtol=1e-4, atol=1e-4)
    )


def _taps_outermost(x: Tensor, weight: Tensor) -> Tensor:
    filters = weight.permute(0, 2, 3, 1).flatten(1)
    out = filters @ F.unfold(x, weight.shape[2:])
    return out.unflatten(2, (x.shape[2] - weight.shape[2] + 1, -1))


EXERCISES = (
    Exercise(
        key="23.positions",
        task="Places at which a window fits along a side of `size` pixels.",
        reference=positions,
        cases=_position_cases,
        hints=(
            "Without stride, padding and dilation it is `size - kernel + 1`: the last place is where the window ends.",
            "Dilation spreads the taps: how many pixels lie from the first tap to the last, both included?",
            "`span = dilation * (kernel - 1) + 1`, then `(size + 2 * padding - span) // stride + 1`.",
        ),
        mistakes=(
            Mistake(
                "forgets dilation",
                "this is the count without dilation. Three taps two pixels apart reach over five pixels, not three.",
                "PaddlePaddle/Paddle issue 5242, 2017",
                answers=(
                    lambda size, kernel, stride=1, padding=0, dilation=1: (size + 2 * padding - kernel) // stride + 1,
                ),
            ),
            Mistake(
                "kernel times dilation",
                "this is the count for a span of `kernel * dilation`. There are only `kernel - 1` gaps between the "
                "taps.",
                "NVIDIA/cutlass pull request 3526, 2026",
                answers=(
                    lambda size, kernel, stride=1, padding=0, dilation=1: (
                        (size + 2 * padding - kernel * dilation) // stride + 1
                    ),
                ),
            ),
            Mistake(
                "plus one too early",
                "this is the count if one is added before the division by the stride. The first place counts as one, "
                "whatever the stride.",
                "the formula once in torch's documentation, torch/nn issue 945, 2016",
                answers=(
                    lambda size, kernel, stride=1, padding=0, dilation=1: (
                        (size + 2 * padding - dilation * (kernel - 1) + 1) // stride + 1
                    ),
                ),
            ),
        ),
    ),
    Exercise(
        key="23.put_back",
        task="The image of shape (B, C, *size) that `columns = F.unfold(image, kernel)` was made of.",
        reference=put_back,
        cases=_put_back_cases,
        agree=_close,
        hints=(
            "`F.fold` adds the copies of a pixel up. How many copies are there of each?",
            "Not the same number everywhere: a corner lies in one window. Fold something whose pixels are all 1.",
            "`F.fold(columns, size, kernel) / F.fold(torch.ones_like(columns), size, kernel)`",
        ),
        mistakes=(
            Mistake(
                "fold alone",
                "this is what fold alone gives. It adds overlaps: a pixel in nine windows comes back nine times as "
                "bright.",
                "pytorch/pytorch issue 7519, 2018; the post of this notebook, 2021, says the same",
                answers=(lambda columns, size, kernel: F.fold(columns, size, kernel),),
            ),
            Mistake(
                "one divisor for all",
                "this is what comes out if all pixels are divided by one number. Those near the border lie in fewer "
                "windows, and turn dark.",
                "pytorch/pytorch issue 67595, 2021",
                answers=(lambda columns, size, kernel: F.fold(columns, size, kernel) / kernel**2,),
            ),
        ),
    ),
    Exercise(
        key="23.conv_by_hand",
        task="`F.conv2d(x, weight)`, stride 1, no padding, from `F.unfold` and a matrix product.",
        reference=conv_by_hand,
        cases=_conv_cases,
        agree=_close,
        hints=(
            "Lay each filter flat into a row; `F.unfold` has one column for each position.",
            "The product is (B, out, positions). The positions run row by row over an output you know the size of.",
            "`(weight.flatten(1) @ F.unfold(x, weight.shape[2:])).unflatten(2, (height, width))`",
        ),
        mistakes=(
            Mistake(
                "flips the filter",
                "this is what the filter gives when it is turned around, as in mathematics. Deep learning's "
                "convolution does not turn it: it is a cross-correlation.",
                "expected the same way in pytorch/pytorch issue 117534, 2024",
                answers=(lambda x, weight: conv_by_hand(x, weight.flip(2, 3)),),
            ),
            Mistake(
                "channels last in the filter only",
                "this is the product of filter rows with the channels innermost and columns with the channels "
                "outermost, as `F.unfold` makes them. The shapes fit, the numbers do not.",
                "the fault of huggingface/candle pull request 3405, 2026: one layout read as the other",
                answers=(_taps_outermost,),
            ),
            Mistake(
                "asks for the convolution",
                "this is torch's own convolution. Write it out: every window a column, every filter a row.",
                answers=(F.conv2d,),
            ),
        ),
    ),
)
