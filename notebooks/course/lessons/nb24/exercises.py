"""Exercises of notebook 24: the weights of a grouped convolution, twelve shortcuts without a copy, and packing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from course.kit.learn.agree import same_values
from course.kit.learn.exercise import Case, Exercise, Mistake
from course.kit.learn.guarded import Guarded


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


@dataclass(frozen=True)
class _NoCopy(Guarded):
    """A call of `add_shortcut` in which no tensor may appear that holds x once for every group."""

    def call(self, function: Callable[..., Any]) -> Any:
        _, x, groups = self.args
        with _RefuseCopies(x.repeat(1, groups, 1, 1)):
            return super().call(function)


class _RefuseCopies(TorchDispatchMode):
    """Raises RuntimeError as soon as an operator makes these copies."""

    def __init__(self, copies: Tensor) -> None:
        super().__init__()
        self.copies = copies

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        made = func(*args, **(kwargs or {}))
        own = isinstance(made, Tensor) and made.untyped_storage().nbytes() >= self.copies.nbytes  # not x, expanded
        if own and torch.equal(made.reshape(-1), self.copies.reshape(-1)):
            raise RuntimeError("x was written down once for every group")
        return made


def _shortcut_cases(random: Random) -> Sequence[Case]:
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    cases = []
    for _ in range(6):
        groups, channels, side = random.randint(2, 6), random.randint(2, 5), random.randint(2, 5)
        out = torch.randn(2, groups * channels, side, side, generator=generator)
        cases.append(_NoCopy((out, torch.randn(2, channels, side, side, generator=generator), groups)))
    return cases


def _pack_cases(random: Random) -> Sequence[Case]:
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    shapes = [tuple(random.randint(2, 5) for _ in range(4)) for _ in range(6)]
    drawn = ([torch.randn(shape, generator=generator) for _ in range(random.randint(2, 5))] for shape in shapes)
    return [Guarded((weights,)) for weights in drawn]


def _close(given: object, expected: Tensor) -> bool:
    return isinstance(given, Tensor) and given.shape == expected.shape and torch.allclose(given, expected)


EXERCISES = (
    Exercise(
        key="24.weight_shape",
        task="Shape of the weight of `nn.Conv2d(in_channels, out_channels, kernel, groups=groups)`.",
        reference=weight_shape,
        cases=_weight_cases,
        agree=same_values,
        hints=(
            "One filter for every output channel. How many input channels does a filter see?",
            "Its own group's: `in_channels // groups`. The number of filters does not change.",
            "`(out_channels, in_channels // groups, kernel, kernel)`",
        ),
        mistakes=(
            Mistake(
                "filters see all channels",
                "these filters see all input channels. A filter sees those of its group only, which is the point of "
                "grouping.",
                "so the specification once read, onnx/onnx issue 1282, 2018; pytorch/pytorch issue 5521, 2018",
                answers=(lambda cin, cout, kernel, groups: (cout, cin, kernel, kernel),),
            ),
            Mistake(
                "divided twice",
                "this is the shape if the filters are divided among the groups as well. There are still "
                "`out_channels` of them, and none is shared by two groups.",
                "BVLC/caffe issue 5334, 2017, takes the smaller tensor for shared filters",
                answers=(lambda cin, cout, kernel, groups: (cout // groups, cin // groups, kernel, kernel),),
            ),
        ),
    ),
    Exercise(
        key="24.add_shortcut",
        task="Add x to every group of out, without a copy of x.",
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
                "this is what interleaved copies give: channel 0 `groups` times, then channel 1. The groups of a "
                "convolution follow one after the other. The shape is the same, the sum is not.",
                "expected the other way round in Theano/Theano issue 6297, 2017",
                answers=(
                    lambda out, x, groups: out + x.repeat_interleave(groups, dim=1),
                    lambda out, x, groups: (out.unflatten(1, (-1, groups)) + x.unsqueeze(2)).flatten(1, 2),
                ),
            ),
            Mistake(
                "copies of x",
                "x was copied here, once for every group. Broadcasting reads the one x as often as it is needed.",
                "the post of this notebook, about 2019, joins twelve of them",
                answers=(lambda out, x, groups: out + torch.cat([x] * groups, dim=1),),
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
                "these filters are dealt out in turn, one of each convolution. A group owns a block of neighbouring "
                "output channels: all filters of the first convolution come first.",
                "onnx/onnx issue 2273, 2019, asks which of the two it is",
                answers=(lambda weights: torch.stack(list(weights), dim=1).flatten(0, 1),),
            ),
            Mistake(
                "along the input",
                "these weights are joined along the input channels. That is a convolution which adds the results up: "
                "one output, not one for each group.",
                "the post of this notebook, about 2019, joins its *activations* along dimension 1, where that is right",
                answers=(lambda weights: torch.cat(list(weights), dim=1),),
            ),
        ),
    ),
)
