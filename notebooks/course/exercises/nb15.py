"""Exercises of notebook 15: round as the rule does, find a bin's cells, send a gradient back through a maximum."""

import math
from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from course.learn.exercise import Case, Exercise, Mistake

Bin = tuple[int, int, int, int]


def round_half_away(x: float) -> int:
    """The nearest whole number, halves away from zero."""
    whole = int(x)  # cuts the fraction off
    return whole + int(abs(x - whole) >= 0.5) * (1 if x > 0 else -1)


def bin_edges(first: int, last: int, i: int, count: int, limit: int) -> tuple[int, int]:
    """First cell of bin i of `count` over the cells first to last, and the one behind its last; the map has `limit`."""
    size = max(last - first + 1, 1)
    start, end = first + i * size // count, first - (-(i + 1) * size // count)
    return min(max(start, 0), limit), min(max(end, 0), limit)


def roi_pool_backward(plane: Tensor, bins: Sequence[Bin], grad: Tensor) -> Tensor:
    """Gradient of plane (H, W), from that of each bin's maximum; a bin is (top, bottom, left, right), ends excluded."""
    out = torch.zeros_like(plane)
    for (top, bottom, left, right), share in zip(bins, grad, strict=True):
        crop = plane[top:bottom, left:right]
        if crop.numel():
            row, column = divmod(int(crop.argmax()), right - left)  # of equals, argmax names the first
            out[top + row, left + column] += share
    return out


def _rounding_cases(random: Random) -> Sequence[Case]:
    fixed = [2.5, 1.5, 0.5, -0.5, -2.5, 2.4, -2.6, 0.0, 0.49999999999999994]
    return [Case((x,)) for x in (*fixed, *(random.randint(-400, 1600) / 16 for _ in range(30)))]


def _bin_cases(random: Random) -> Sequence[Case]:
    cases = [Case((2, 3, i, 2, 6)) for i in range(2)] + [Case((0, 7, i, 7, 20)) for i in range(7)]
    while len(cases) < 40:
        first, count, limit = random.randint(-4, 20), random.randint(1, 7), random.randint(8, 24)
        last, i = first + random.randint(-5, 20), random.randrange(count)
        size = max(last - first + 1, 1) / count
        # Only sizes at which divided and multiplied numbers round to the exact edges: that they need not is for text.
        if math.ceil((i + 1) * size) == -(-(i + 1) * max(last - first + 1, 1) // count):
            cases.append(Case((first, last, i, count, limit)))
    return cases


def _backward_cases(random: Random) -> Sequence[Case]:
    ones = torch.ones(3, 3)
    cases = [Case((ones, [(0, 3, 0, 3)], torch.ones(1))), Case((ones, [(0, 2, 0, 2), (0, 0, 1, 3)], torch.ones(2)))]
    for _ in range(8):
        plane = torch.tensor([[float(random.randint(0, 6)) for _ in range(5)] for _ in range(4)])
        bins = []
        for _ in range(6):
            top, left = random.randint(0, 3), random.randint(0, 4)
            bins.append((top, random.randint(top, 4), left, random.randint(left, 5)))
        cases.append(Case((plane, bins, torch.tensor([float(random.randint(1, 9)) for _ in bins]))))
    return cases


def _exclusive_end(first: int, last: int, i: int, count: int, limit: int) -> tuple[int, int]:
    return bin_edges(first, last - 1, i, count, limit)


def _split_ties(plane: Tensor, bins: Sequence[Bin], grad: Tensor) -> Tensor:
    out = torch.zeros_like(plane)
    for (top, bottom, left, right), share in zip(bins, grad, strict=True):
        crop = plane[top:bottom, left:right]
        if crop.numel():
            winners = crop == crop.max()
            out[top:bottom, left:right] += winners * share / winners.sum()
    return out


def _all_winners(plane: Tensor, bins: Sequence[Bin], grad: Tensor) -> Tensor:
    out = torch.zeros_like(plane)
    for (top, bottom, left, right), share in zip(bins, grad, strict=True):
        crop = plane[top:bottom, left:right]
        if crop.numel():
            out[top:bottom, left:right] += (crop == crop.max()) * share
    return out


def _close(given: object, expected: Tensor) -> bool:
    return isinstance(given, Tensor) and given.shape == expected.shape and torch.allclose(given, expected)


EXERCISES = (
    Exercise(
        key="15.round_half_away",
        task="Round a number to a whole one, halves away from zero, as C's `round` does.",
        reference=round_half_away,
        cases=_rounding_cases,
        hints=(
            "2.5 becomes 3 and -2.5 becomes -3: what happens to the size is the same on both sides of zero.",
            "Cut the fraction off, look at what was cut off, and step one away from zero if it is a half or more. "
            "(Adding 0.5 first rounds 0.49999999999999994 up: the sum is 1.)",
            "`whole = int(x)`, then one further if `abs(x - whole) >= 0.5`, up or down as x is",
        ),
        mistakes=(
            Mistake(
                "bankers' rounding",
                "you took halves to the even number, as round and torch.round do: 1.5 and 2.5 both become 2.",
                "pytorch/vision issue 923, 2019: a slow RoI pooling with torch.round that differs at scale 0.5",
                answers=(round,),
            ),
        ),
    ),
    Exercise(
        key="15.bin_edges",
        task="The cells [start, end) of bin i of `count` over the cells first to last, cut to a map of `limit` cells.",
        reference=bin_edges,
        cases=_bin_cases,
        agree=lambda given, expected: tuple(given) == expected,
        hints=(
            "Both `first` and `last` belong to the region; how many cells is that, and how many at least?",
            "The start is rounded down, the end is rounded up, both relative to `first`. Cut to 0..limit at the very "
            "end, not before.",
            "With `size = max(last - first + 1, 1) / count`: `floor(i * size) + first`, `ceil((i + 1) * size) + first`",
        ),
        mistakes=(
            Mistake(
                "the last cell left out",
                "you took the region to end before `last`. A region from 0 to 7 has eight cells.",
                "facebookresearch/maskrcnn-benchmark issue 328, 2019: (0, 0, 7, 7) expected to be 7 x 7",
                answers=(_exclusive_end,),
            ),
        ),
    ),
    Exercise(
        key="15.roi_pool_backward",
        task="The gradient of a map (H, W) from the gradient of each bin's maximum; of equal cells the first one won.",
        reference=roi_pool_backward,
        cases=_backward_cases,
        agree=_close,
        hints=(
            "A maximum passes on one cell's feature. Whose gradient is it, then?",
            "`crop.argmax()` counts within the crop, row by row; bins overlap, so add to what is there; an empty bin "
            "has nothing to give.",
            "`row, column = divmod(int(crop.argmax()), right - left)`, then `out[top + row, left + column] += share`",
        ),
        mistakes=(
            Mistake(
                "ties split",
                "you shared the gradient among equal cells, as torch.amax does. RoI pooling noted one, the first.",
                "pytorch/pytorch issue 56734, 2021; tensorflow/tensorflow issue 4886, 2016",
                answers=(_split_ties,),
            ),
            Mistake(
                "every winner paid",
                "you gave the whole gradient to each of the equal cells, so that more comes out than went in.",
                "Theano/Theano issue 5404, 2017, on max pooling in Theano and in early Caffe",
                answers=(_all_winners,),
            ),
        ),
    ),
)
