"""Raise if `convert(linears, sizes)`, which returns a function of x, does not compute what the loop computes."""

from collections.abc import Callable, Sequence
from random import Random

import torch
from torch import Tensor, nn

from course.kit.learn.exercise import Program, Trial
from course.kit.learn.puzzle import wrong
from course.lessons.nb26.puzzles.as_one import as_one

Convert = Callable[[Sequence[nn.Linear], Sequence[int]], Callable[[Tensor], Tensor]]

hints = (
    "A wrong conversion can be right for copies of one layer, for square layers, for groups of one size.",
    "Draw the Linears of a case such as sizes (3, 0, 5) with 4 inputs and 6 outputs, and x with `torch.randn`. Then "
    "compare with the loop.",
    "A second case with square layers, 5 -> 5, finds the conversion that raises for others and hides it. "
    "`torch.testing.assert_close(convert(linears, sizes)(x), torch.stack(rows, dim=1))` raises for you.",
)


def loop(linears: Sequence[nn.Linear], sizes: Sequence[int], x: Tensor) -> Tensor:
    """Row by row: (B, groups, in) -> (B, classes, out)."""
    calls = iter(linears)
    return torch.stack([next(calls)(x[:, g]) for g, n in enumerate(sizes) for _ in range(n)], dim=1)


def check_conversion(convert: Convert) -> None:
    for sizes, fan_in, out in (((3, 0, 5), 4, 6), ((4, 1), 5, 5)):
        linears = [nn.Linear(fan_in, out) for _ in range(sum(sizes))]
        x = torch.randn(7, len(sizes), fan_in)
        torch.testing.assert_close(convert(linears, sizes)(x), loop(linears, sizes, x), rtol=1e-4, atol=1e-5)


def _product(weight: Tensor, bias: Tensor, index: Sequence[int]) -> Callable[[Tensor], Tensor]:
    return lambda x: torch.einsum("bni,noi->bno", x[:, torch.as_tensor(index, dtype=torch.int64)], weight) + bias


def _right(linears, sizes):
    return _product(*as_one(linears, sizes))


def _loop(linears, sizes):
    return lambda x: loop(linears, sizes, x)


def _tiled(linears, sizes):
    weight, bias, _ = as_one(linears, sizes)
    return _product(weight, bias, [c % len(sizes) for c in range(len(linears))])


def _without_empty(linears, sizes):
    return _product(*as_one(linears, [n for n in sizes if n]))


def _first_layer(linears, sizes):
    return _right([linears[0]] * len(linears), sizes)


def _turned_square(linears, sizes):
    weight, bias, index = as_one(linears, sizes)
    square = weight.shape[1] == weight.shape[2]
    return _product(weight.mT if square else weight, bias, index)


def _turned_bias(linears, sizes):
    weight, bias, index = as_one(linears, sizes)
    return _product(weight, bias.T if len(set(bias.shape)) == 1 else bias, index)


def _no_bias(linears, sizes):
    weight, bias, index = as_one(linears, sizes)
    return _product(weight, torch.zeros_like(bias), index)


def cases(random: Random) -> Sequence[Trial]:
    programs = {
        "a right conversion": _right,
        "the loop itself": _loop,
        "an index that goes round the groups": _tiled,
        "an index that forgets empty groups": _without_empty,
        "the first layer in place of all": _first_layer,
        "square weights that are turned": _turned_square,
        "a square bias that is turned": _turned_bias,
        "no bias": _no_bias,
    }
    trials = [Trial((Program(words, run),)) for words, run in programs.items()]
    return random.sample(trials, len(trials))


def _on(convert, sizes, fan_in, out, same=False, zero=False):
    linears = [nn.Linear(fan_in, out) for _ in range(sum(sizes))]
    if same:
        linears = [linears[0]] * len(linears)
    if zero:
        for linear in linears:
            nn.init.zeros_(linear.bias)
    x = torch.randn(7, len(sizes), fan_in)
    torch.testing.assert_close(convert(linears, sizes)(x), loop(linears, sizes, x), rtol=1e-4, atol=1e-5)


@wrong
def shapes_alone(convert):
    """this is how a test ends that looks at the shape. All of these mistakes give the right one."""
    linears = [nn.Linear(4, 6) for _ in range(8)]
    assert convert(linears, (3, 0, 5))(torch.randn(7, 3, 4)).shape == (7, 8, 6)


@wrong
def copies_of_one_layer(convert):
    """this is how a test ends whose Linears are copies of one. Then it makes no difference which one is used."""
    _on(convert, (3, 0, 5), 4, 6, same=True)
    _on(convert, (5,), 5, 5, same=True)


@wrong
def no_square_layers(convert):
    """this is how a test ends that has no square case. Turned weights and a turned bias fit only where two sizes are
    equal, so a test needs sizes that are equal as well.
    """
    _on(convert, (3, 0, 5), 4, 6)


@wrong
def no_empty_group(convert):
    """this is how a test ends without an empty group in front of a full one."""
    _on(convert, (4, 1), 5, 5)


@wrong
def zero_biases(convert):
    """this is how a test ends whose biases are zero: whoever forgets or turns them passes."""
    _on(convert, (3, 0, 5), 4, 6, zero=True)
    _on(convert, (4, 1), 5, 5, zero=True)
