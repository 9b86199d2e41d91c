"""A test: it calls `program(features, rois, output_size, spatial_scale)` and raises an AssertionError if the program
does not read at the box. It passes on right programs and fails on wrong ones.
"""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

import torch
from torch import Tensor
from torchvision import ops as vision

from course.kit.learn.exercise import Case, Ended, Program, Trial
from course.kit.learn.puzzle import also, wrong
from frcnn_lite import ops

hints = (
    "A map whose values say where they stand turns a mean into a place. You have met one above.",
    "A shift can be across or down, so use two maps. How far may a right program be off, and a wrong one?",
    "`place = 16 * torch.arange(8.0) + 8`, as rows and as columns; the one bin of a box must return the box's "
    "middle, within a pixel.",
)


Align = Callable[[Tensor, Tensor, int, float], Tensor]
HALF_A_PIXEL = "half a pixel instead of half a cell"


def _moved(across: float, down: float, features: Tensor, rois: Tensor, size: int, scale: float) -> Tensor:
    """RoIAlign that reads some cells to the right of the box and below it."""
    shift = torch.tensor([0.0, across, down, across, down]) / scale  # noqa: FL002 exercises are on the CPU
    return vision.roi_align(features, rois + shift, size, scale, 2, True)


def _turned(features: Tensor, rois: Tensor, size: int, scale: float) -> Tensor:
    return vision.roi_align(features, rois[:, [0, 2, 1, 4, 3]], size, scale, 2, True)


def _rounded_differently(features: Tensor, rois: Tensor, size: int, scale: float) -> Tensor:
    """Right, and one or two digits apart from the others at the end, as processors may be from each other."""
    return ops.roi_align(features, rois, size, scale, 2, True) * (1 + 3e-7)


def _half_a_pixel(features: Tensor, rois: Tensor, size: int, scale: float) -> Tensor:
    """As an export of 2020 had it (pytorch/vision pull request 2613): half a pixel, not half a cell, is taken off."""
    return vision.roi_align(features, rois - torch.tensor([0.0, 0.5, 0.5, 0.5, 0.5]), size, scale)  # noqa: FL002 on the CPU


def cases(random: Random) -> Sequence[Case]:
    """Three right programs and eight wrong ones."""
    programs: dict[str, Align] = {
        "torchvision, aligned": lambda f, r, size, scale: vision.roi_align(f, r, size, scale, 2, True),
        "torchvision, aligned, more points": lambda f, r, size, scale: vision.roi_align(f, r, size, scale, 5, True),
        "this project's, aligned, rounded differently": _rounded_differently,
        "torchvision's default": vision.roi_align,
        HALF_A_PIXEL: _half_a_pixel,
        "half a cell to the right": partial(_moved, 0.5, 0.0),
        "half a cell down": partial(_moved, 0.0, 0.5),
        "half a cell the other way": partial(_moved, -0.5, -0.5),
        "x and y exchanged": _turned,
    }
    for _ in range(2):
        across = random.choice((-1, 1)) * random.uniform(0.3, 0.8)
        programs[f"{across:.2f} cells to the right"] = partial(_moved, across, 0.0)
    return [Trial((Program(name, compute),)) for name, compute in programs.items()]


def check_align(program: Align) -> None:
    place = 16 * torch.arange(8.0) + 8  # noqa: FL002 exercises are on the CPU
    rois = torch.tensor([[0.0, 20, 40, 84, 88]])  # noqa: FL002 its middle is (52, 64)
    for features, middle in ((place.expand(1, 1, 8, 8), 52), (place.view(8, 1).expand(1, 1, 8, 8), 64)):
        assert abs(float(program(features, rois, 1, 1 / 16)) - middle) < 1


def _places() -> tuple[Tensor, Tensor]:
    """Maps whose cells hold the pixel of their own middle, from left to right and from top to bottom."""
    place = 16 * torch.arange(8.0) + 8  # noqa: FL002 exercises are on the CPU
    return place.expand(1, 1, 8, 8), place.view(8, 1).expand(1, 1, 8, 8)


def _rois(*box: float) -> Tensor:
    return torch.tensor([[0.0, *box]])  # noqa: FL002 exercises are on the CPU


def _one_value(tolerance: float, program: Align) -> None:
    assert abs(float(program(torch.ones_like(_places()[0]), _rois(20, 40, 84, 88), 1, 1 / 16)) - 1) <= tolerance


def _within(pixels: float, program: Align) -> None:
    for features, middle in zip(_places(), (52, 64), strict=True):
        assert abs(float(program(features, _rois(20, 40, 84, 88), 1, 1 / 16)) - middle) < pixels


def _passed(cases: Sequence[Case], given: Sequence[Any]) -> dict[str, bool]:
    """Whether each program, by its name, passes the reader's test."""
    ends = zip(cases, given, strict=True)
    return {case.args[0].words: isinstance(end, Ended) and end.passed for case, end in ends}


def _too_tolerant(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    """All right programs pass, several that read beside the box pass, and x and y exchanged do not."""
    passed = _passed(cases, given)
    right = [name for name in passed if "aligned" in name]
    beside = [name for name in passed if name not in right and passed[name]]
    return all(passed[name] for name in right) and HALF_A_PIXEL in beside[:-1] and not passed["x and y exchanged"]


def _wants_more_than_the_place(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    """All wrong programs fail, and of the right ones some fail and some pass."""
    passed = _passed(cases, given)
    right = {passed.pop(name) for name in list(passed) if "aligned" in name}
    return right == {True, False} and not any(passed.values())


@wrong
def never_fails(program: Align) -> bool:
    """this test lets every program pass. Either it never raises anything (a test that *returns* False has passed; write
    `assert`), or its map is the same everywhere, so the mean is the same wherever a program reads.

    Source: pytest warns about tests that return something since version 7.2, 2022
    """
    return abs(float(program(_places()[0], _rois(20, 40, 84, 88), 1, 1 / 16)) - 52) < 1


@also(never_fails)
def _(*given):
    return _one_value(1e-5, *given)


@wrong
def one_value_to_the_last_bit(*given):
    """this is how a test ends whose map is the same everywhere, compared to the last bit. Every wrong program passes,
    since the mean is the same wherever it reads, and a right one fails, since it rounds differently.
    """
    return _one_value(0, *given)


@wrong
def stride_1(program: Align) -> None:
    """this is how a test ends that runs at stride 1, where half a pixel is half a cell, or that allows nearly half a
    cell. A program that takes off half a pixel at every stride passes.

    Source: half a pixel, as in the export of pytorch/vision pull request 2613, 2020
    """
    place = torch.arange(12.0) + 0.5  # noqa: FL002 exercises are on the CPU
    for features, middle in ((place.expand(1, 1, 12, 12), 5), (place.view(12, 1).expand(1, 1, 12, 12), 6)):
        assert abs(float(program(features, _rois(3, 4, 7, 8), 1, 1.0)) - middle) < 0.1


@wrong(recognise=_too_tolerant)
def too_tolerant(*given):
    """this is how a test ends that allows about half a cell, which is the very thing to find. Right programs are off by
    far less, so a pixel is enough.
    """
    return _within(7.9, *given)


@also(too_tolerant)
def _(*given):
    return _within(8.5, *given)


@also(too_tolerant)
def _(*given):
    return _within(11, *given)


@wrong
def one_direction_only(program: Align) -> None:
    """this is how a test ends that finds what is read beside the box in one direction only. Use two maps: one that
    rises to the right, and one that rises downwards.

    Source: boxes with y first go unseen in pytorch/vision issue 1856, 2020
    """
    assert abs(float(program(_places()[0], _rois(20, 40, 84, 88), 1, 1 / 16)) - 52) < 1


@also(one_direction_only)
def only_down(program: Align) -> None:
    assert abs(float(program(_places()[1], _rois(20, 40, 84, 88), 1, 1 / 16)) - 64) < 1


@wrong
def x_and_y_exchanged(program: Align) -> None:
    """this test does not see when x and y are exchanged. A box whose middle is as far down as it is to the right cannot
    show it, and neither can the sum of the two.

    Source: pytorch/vision issue 1856, 2020: boxes with y first
    """
    for features in _places():
        assert abs(float(program(features, _rois(32, 32, 48, 48), 1, 1 / 16)) - 40) < 1


@also(x_and_y_exchanged)
def sum_of_both(program: Align) -> None:
    across, down = (float(program(features, _rois(20, 40, 84, 88), 1, 1 / 16)) for features in _places())
    assert abs(across + down - 116) < 1


@wrong(recognise=_wants_more_than_the_place)
def more_than_the_place(program: Align) -> None:
    """this test refuses programs that read at the right place. A right program may take more points in each bin. The
    mean of its points is the same only on a map that rises evenly, and even there only within rounding: compare on such
    a map, with a tolerance.
    """
    features = torch.rand(1, 3, 12, 12, generator=torch.Generator().manual_seed(0))
    expected = vision.roi_align(features, _rois(20, 40, 84, 88), 2, 1 / 16, 2, True)
    torch.testing.assert_close(program(features, _rois(20, 40, 84, 88), 2, 1 / 16), expected)


@also(more_than_the_place)
def to_the_last_bit(program: Align) -> None:
    for features, middle in zip(_places(), (52, 64), strict=True):
        assert float(program(features, _rois(20, 40, 84, 88), 1, 1 / 16)) == middle


@wrong
def compares_with_the_default(program: Align) -> None:
    """this is how a test ends that expects what torchvision's `roi_align` gives with its defaults, or the index that
    the pixel has when it is divided by the stride, which is the same. That is half a cell to the right and below, so
    the test passes on this program and fails on programs that are right.

    Source: microsoft/onnxruntime issue 6921, 2021: an operator that copied the half cell
    """
    for features in _places():
        expected = vision.roi_align(features, _rois(20, 40, 84, 88), 2, 1 / 16)
        torch.testing.assert_close(program(features, _rois(20, 40, 84, 88), 2, 1 / 16), expected)


@also(compares_with_the_default)
def index_across(program: Align) -> None:
    features = torch.arange(8.0).expand(1, 1, 8, 8)  # noqa: FL002 exercises are on the CPU
    assert abs(float(program(features, _rois(20, 40, 84, 88), 1, 1 / 16)) - 52 / 16) < 0.1
