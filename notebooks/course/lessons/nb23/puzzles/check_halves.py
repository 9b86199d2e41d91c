"""A test: it calls `program(picture, weight)`, which convolves a picture in an upper and a lower part, and raises an
AssertionError if the result, or a gradient, is not that of the whole picture. It passes on right programs and fails on
wrong ones.
"""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from course.kit.learn.exercise import Case, Ended, Program, Trial
from course.kit.learn.puzzle import also, wrong

hints = (
    "`F.conv2d(picture, weight, padding=k // 2)` is what should come out. For which pictures and which filters could a "
    "wrong program still give it?",
    "Five rows of filter need two rows of halo, and an odd number of rows has no middle. And the gradient of the "
    "picture can be wrong where the output is right.",
    "A picture of 9 rows, a filter of 5 x 5; `torch.autograd.grad((out**2).sum(), picture)` for both, and "
    "`torch.testing.assert_close`, twice.",
)

Convolve = Callable[[Tensor, Tensor], Tensor]


def _halves(
    picture: Tensor,
    weight: Tensor,
    cut: int | None = None,
    halo: int | None = None,
    above: bool = True,
    below: bool = True,
    detached: bool = False,
) -> Tensor:
    """The convolution in two parts. `above`, `below`: whether the upper and the lower part get rows."""
    rows, edge = picture.shape[2], weight.shape[2] // 2
    cut = (rows + 1) // 2 if cut is None else min(cut, rows - 1)
    given = min(edge, edge if halo is None else halo)
    upper, lower = picture[:, :, :cut], picture[:, :, cut:]
    to_upper, to_lower = lower[:, :, :given], upper[:, :, max(cut - given, 0) :]
    if detached:
        to_upper, to_lower = to_upper.detach(), to_lower.detach()
    parts = []
    for part, rows_above, rows_below in (
        (upper, None, to_upper if above else None),
        (lower, to_lower if below else None, None),
    ):
        there = [piece for piece in (rows_above, part, rows_below) if piece is not None]
        missing = [edge - (0 if piece is None else piece.shape[2]) for piece in (rows_above, rows_below)]
        padded = F.pad(torch.cat(there, dim=2), (edge, edge, *missing))
        parts.append(F.conv2d(padded, weight))
    return torch.cat(parts, dim=2)


def _whole(picture: Tensor, weight: Tensor) -> Tensor:
    """Right, as a product of columns, and rounded differently, as processors may."""
    edge = weight.shape[2] // 2
    product = weight.flatten(1) @ F.unfold(picture, weight.shape[2:], padding=edge)
    return product.unflatten(2, picture.shape[2:]) * (1 + 1e-13)


def _halo_left_in(picture: Tensor, weight: Tensor) -> Tensor:
    """The rows that came from the other half are not cut off: those at the seam come out twice."""
    edge = weight.shape[2] // 2
    cut = (picture.shape[2] + 1) // 2
    parts = picture[:, :, : cut + edge], picture[:, :, max(cut - edge, 0) :]
    return torch.cat([F.conv2d(part, weight, padding=edge) for part in parts], dim=2)


def _even_only(picture: Tensor, weight: Tensor) -> Tensor:
    """Both halves have `rows // 2` rows: the last of an odd number is left out."""
    return _halves(picture[:, :, : picture.shape[2] // 2 * 2], weight)


def cases(random: Random) -> Sequence[Case]:
    """Three right programs and six wrong ones."""
    cut, one_side = random.randint(3, 12), random.choice(("above", "below"))
    programs: dict[str, Convolve] = {
        "right": _halves,
        "right, as columns": _whole,
        f"right, cut after row {cut}": partial(_halves, cut=cut),
        "no halo": partial(_halves, halo=0),
        "one row of halo for every filter": partial(_halves, halo=1),
        f"nothing from the part {one_side}": partial(_halves, above=one_side == "above", below=one_side == "below"),
        "halo not cut off": _halo_left_in,
        "gradient not sent home": partial(_halves, detached=True),
        "the last of an odd number of rows left out": _even_only,
    }
    return [Trial((Program(words, run),)) for words, run in programs.items()]


def _compare(program: Convolve, rows: int, kernel: int, gradient: bool = True, tolerance: float | None = None) -> None:
    picture = torch.rand(1, 2, rows, 6, dtype=torch.float64, requires_grad=True)  # noqa: FL002 exercises are on the CPU
    weight = torch.rand(3, 2, kernel, kernel, dtype=torch.float64)  # noqa: FL002 exercises are on the CPU
    found, expected = program(picture, weight), F.conv2d(picture, weight, padding=kernel // 2)
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
    if gradient:
        pairs = (torch.autograd.grad((out**2).sum(), picture)[0] for out in (found, expected))
        torch.testing.assert_close(*pairs)


def check_halves(program: Convolve) -> None:
    picture = torch.rand(1, 2, 9, 6, dtype=torch.float64, requires_grad=True)  # noqa: FL002 exercises are on the CPU
    weight = torch.rand(3, 2, 5, 5, dtype=torch.float64)  # noqa: FL002 exercises are on the CPU
    found, expected = program(picture, weight), F.conv2d(picture, weight, padding=2)
    torch.testing.assert_close(found, expected)
    pairs = (torch.autograd.grad((out**2).sum(), picture)[0] for out in (found, expected))
    torch.testing.assert_close(*pairs)


def _passes(words: str) -> Callable[[Sequence[Case], Sequence[Any]], bool]:
    """Whether the right programs pass, and the one with these words does, while the one without any halo fails."""

    def recognise(cases: Sequence[Case], given: Sequence[Any]) -> bool:
        ends = zip(cases, given, strict=True)
        passed = {case.args[0].words: isinstance(end, Ended) and end.passed for case, end in ends}
        right = all(is_passed for name, is_passed in passed.items() if name.startswith("right"))
        return right and passed[words] and not passed["no halo"]

    return recognise


@wrong
def never_fails(program: Convolve) -> None:
    """this is how a test ends that passes on every program, because it compares nothing."""
    program(torch.rand(1, 1, 9, 6), torch.rand(1, 1, 3, 3))  # noqa: FL002 exercises are on the CPU


@wrong
def shapes_only(program: Convolve) -> None:
    """this test fails only where a shape is wrong. Either it compares shapes, and a seam without halo has the right
    shape; or it *returns* whether the numbers agree, which no test runner reads. Write `assert`.

    Source: pytest warns about tests that return something since version 7.2, 2022
    """
    picture, weight = torch.rand(1, 1, 9, 6), torch.rand(1, 1, 3, 3)  # noqa: FL002 exercises are on the CPU
    assert program(picture, weight).shape == picture.shape


@also(shapes_only)
def _(program):
    picture, weight = torch.rand(1, 1, 8, 6), torch.rand(1, 1, 3, 3)  # noqa: FL002 exercises are on the CPU
    assert program(picture, weight).shape == picture.shape


@also(shapes_only)
def _(program):
    picture, weight = torch.rand(1, 1, 8, 6), torch.rand(1, 1, 3, 3)  # noqa: FL002 exercises are on the CPU
    return torch.allclose(program(picture, weight), F.conv2d(picture, weight, padding=1))


@wrong(recognise=_passes("gradient not sent home"))
def outputs_only(program: Convolve) -> None:
    """this test lets a program pass whose output is right and whose gradient is not: what a GPU computes from rows that
    it was sent is owed to the GPU that sent them. Compare the gradient of the picture as well.
    """
    _compare(program, 9, 5, gradient=False)


@also(outputs_only)
def _(program):
    _compare(program, 8, 3, gradient=False)


@wrong(recognise=_passes("one row of halo for every filter"))
def small_filters(program: Convolve) -> None:
    """this is how a test ends whose filters have 3 rows at most. They need one row of halo, larger ones need more, and
    a program that always sends one row passes.
    """
    _compare(program, 9, 3)


@wrong(recognise=_passes("the last of an odd number of rows left out"))
def even_rows(program: Convolve) -> None:
    """this is how a test ends whose pictures have an even number of rows. An odd number has no middle, and a program
    that divides by two leaves a row out.
    """
    _compare(program, 8, 5)


@wrong
def to_the_last_bit(program: Convolve) -> None:
    """this is how a test ends that asks for equal bits. A right program may add in a different order, and rounds
    differently: use `torch.testing.assert_close`.
    """
    _compare(program, 9, 5, tolerance=0)
