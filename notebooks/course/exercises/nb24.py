"""Exercises of notebook 24: the weights of a grouped convolution, twelve shortcuts without a copy, and packing."""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from course.learn.exercise import Case, Exercise, Mistake


def weight_shape(in_channels: int, out_channels: int, kernel: int, groups: int) -> tuple[int, int, int, int]:
    """Shape of `nn.Conv2d(in_channels, out_channels, kernel, groups=groups).weight`."""
    return (out_channels, in_channels // groups, kernel, kernel)


def add_shortcut(out: Tensor, x: Tensor, groups: int) -> Tensor:
    """`out` (B, groups * C, H, W) plus x (B, C, H, W) on the C channels of every group, without a copy of x."""
    return (out.unflatten(1, (groups, -1)) + x.unsqueeze(1)).flatten(1, 2)


def pack(weights: Sequence[Tensor]) -> Tensor:
    """Weight of the one grouped convolution that computes what these convolutions (out, in, kh, kw) compute."""
    return torch.cat(list(weights))


def _weight_cases(random: Random) -> Sequence[Case]:
    fixed = [(6, 12, 3, 3), (3072, 6144, 1, 12), (12, 12, 3, 12), (12, 12, 3, 1), (4, 8, 5, 2)]
    drawn = []
    for _ in range(20):
        groups = random.randint(2, 12)
        drawn.append((groups * random.randint(1, 9), groups * random.randint(1, 9), random.choice([1, 3, 5]), groups))
    return [Case(case) for case in fixed + drawn]


def _shortcut_cases(random: Random) -> Sequence[Case]:
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    cases = []
    for _ in range(6):
        groups, channels, side = random.randint(2, 6), random.randint(2, 5), random.randint(2, 5)
        out = torch.randn(2, groups * channels, side, side, generator=generator)
        cases.append(Case((out, torch.randn(2, channels, side, side, generator=generator), groups)))
    return cases


def _pack_cases(random: Random) -> Sequence[Case]:
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    shapes = [tuple(random.randint(2, 5) for _ in range(4)) for _ in range(6)]
    return [Case(([torch.randn(shape, generator=generator) for _ in range(random.randint(2, 5))],)) for shape in shapes]


def _close(given: object, expected: Tensor) -> bool:
    return isinstance(given, Tensor) and given.shape == expected.shape and torch.allclose(given, expected)


def _same_numbers(given: object, expected: tuple[int, ...]) -> bool:
    return isinstance(given, tuple | list) and tuple(given) == expected


EXERCISES = (
    Exercise(
        key="24.weight_shape",
        task="Shape of the weight of `nn.Conv2d(in_channels, out_channels, kernel, groups=groups)`.",
        reference=weight_shape,
        cases=_weight_cases,
        agree=_same_numbers,
        hints=(
            "One filter for every output channel. How many input channels does a filter see?",
            "Its own group's: `in_channels // groups`. The number of filters does not change.",
            "`(out_channels, in_channels // groups, kernel, kernel)`",
        ),
        mistakes=(
            Mistake(
                "filters see all channels",
                "you gave each filter all input channels. It sees those of its group only, which is the point of "
                "grouping.",
                "so the specification once read, onnx/onnx issue 1282, 2018; pytorch/pytorch issue 5521, 2018",
                answers=(lambda cin, cout, kernel, groups: (cout, cin, kernel, kernel),),
            ),
            Mistake(
                "divided twice",
                "you divided the filters among the groups as well. There are still `out_channels` filters, and none "
                "is shared by two groups.",
                "BVLC/caffe issue 5334, 2017, takes the smaller tensor for shared filters",
                answers=(lambda cin, cout, kernel, groups: (cout // groups, cin // groups, kernel, kernel),),
            ),
        ),
    ),
    Exercise(
        key="24.add_shortcut",
        task="Add x to every group of out.",
        reference=add_shortcut,
        cases=_shortcut_cases,
        agree=_close,
        hints=(
            "Broadcasting repeats without copying. It needs an axis of size 1 where the groups are.",
            "`out.unflatten(1, (groups, -1))` is (B, groups, C, H, W). Which shape must x have?",
            "`(out.unflatten(1, (groups, -1)) + x.unsqueeze(1)).flatten(1, 2)`",
        ),
        mistakes=(
            Mistake(
                "interleaved",
                "your copies are interleaved: channel 0 `groups` times, then channel 1. The groups of a convolution "
                "lie one after the other. The shape is the same, the sum is not.",
                "expected the other way round in Theano/Theano issue 6297, 2017",
                answers=(
                    lambda out, x, groups: out + x.repeat_interleave(groups, dim=1),
                    lambda out, x, groups: (out.unflatten(1, (-1, groups)) + x.unsqueeze(2)).flatten(1, 2),
                ),
            ),
        ),
    ),
    Exercise(
        key="24.pack",
        task="Weight of the grouped convolution that replaces a loop over convolutions with these weights.",
        reference=pack,
        cases=_pack_cases,
        agree=_close,
        hints=(
            "Group k makes the k-th block of output channels. Along which axis of the weight do output channels lie?",
            "The input axis stays as it is: a grouped weight holds the channels of one group only.",
            "`torch.cat(weights)`",
        ),
        mistakes=(
            Mistake(
                "interleaved",
                "you dealt the filters out in turn, one of each convolution. A group owns a block of neighbouring "
                "output channels: all filters of the first convolution come first.",
                "onnx/onnx issue 2273, 2019, asks which of the two it is",
                answers=(lambda weights: torch.stack(list(weights), dim=1).flatten(0, 1),),
            ),
            Mistake(
                "along the input",
                "you joined the weights along the input channels. That is a convolution which adds the results up: "
                "one output, not one for each group.",
                "the post of this notebook, about 2019, joins its *activations* along dimension 1, where that is right",
                answers=(lambda weights: torch.cat(list(weights), dim=1),),
            ),
        ),
    ),
)
