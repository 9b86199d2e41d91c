"""A test that passes for a `loss_of(scores, target, sizes)` that returns the mean cross entropy of all rows, and fails
for one that does not. `sizes` are the rows of each GPU, of which one may have none.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course.kit.learn.exercise import Case, Program, Trial
from course.kit.learn.puzzle import wrong

hints = (
    "The right value needs no GPUs: `F.cross_entropy(scores, target)`.",
    "For which `sizes` is the mean of means equal to the mean? A test with those cannot see the difference.",
    "Compare with `torch.allclose` for parts of different sizes, `[1, 3, 2]`, and for an empty one, `[0, 4, 2]`.",
)


LossOf = Callable[[Tensor, Tensor, list[int]], Tensor]


RIGHT, ROUNDED = "the mean of all rows", "the mean of all rows, rounded differently"


NO_EMPTY_PART = "right, but nan where a part is empty"


def same_loss(loss_of: LossOf) -> None:
    scores, target = torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    whole = F.cross_entropy(scores, target)
    for sizes in ([1, 3, 2], [0, 4, 2]):
        assert torch.allclose(loss_of(scores, target, sizes), whole)


def _each(scores: Tensor, target: Tensor, sizes: list[int]) -> list[Tensor]:
    """The losses of the rows, in the parts that the GPUs compute."""
    return [
        F.cross_entropy(some, wanted, reduction="none")
        for some, wanted in zip(scores.split(sizes), target.split(sizes), strict=True)
    ]


def _right(scores: Tensor, target: Tensor, sizes: list[int]) -> Tensor:
    return torch.cat(_each(scores, target, sizes)).mean()


def _rounded_differently(scores: Tensor, target: Tensor, sizes: list[int]) -> Tensor:
    """Right, and apart from the others in the last digit, as where the parts are added in a different order."""
    return _right(scores, target, sizes) * (1 + 3e-7)


def _mean_of_means(scores: Tensor, target: Tensor, sizes: list[int]) -> Tensor:
    return torch.stack([losses.mean() for losses in _each(scores, target, sizes) if len(losses)]).mean()


def _stops_at_no_rows(scores: Tensor, target: Tensor, sizes: list[int]) -> Tensor:
    """Right while every GPU has a row; the mean of none is not a number."""
    weighed = [losses.mean() * len(losses) / len(scores) for losses in _each(scores, target, sizes)]
    return torch.stack(weighed).sum()


def _of_the_first(scores: Tensor, target: Tensor, sizes: list[int]) -> Tensor:
    return next(losses for losses in _each(scores, target, sizes) if len(losses)).mean()


def _sum_of_means(scores: Tensor, target: Tensor, sizes: list[int]) -> Tensor:
    return torch.stack([losses.mean() for losses in _each(scores, target, sizes) if len(losses)]).sum()


def _is_bit_for_bit(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    """The wrong programs fail, and of the right ones the one that rounds differently, by an assertion."""
    ended = {case.args[0].words: end for case, end in zip(cases, given, strict=True)}
    failed = not ended[ROUNDED].passed and ended[ROUNDED].why.startswith("AssertionError")
    return failed and not any(end.passed for name, end in ended.items() if name not in (RIGHT, NO_EMPTY_PART))


def cases(random: Random) -> Sequence[Case]:
    fixed = {
        RIGHT: _right,
        ROUNDED: _rounded_differently,
        "a mean of means": _mean_of_means,
        "the mean of the first part": _of_the_first,
        "a sum of means": _sum_of_means,
        NO_EMPTY_PART: _stops_at_no_rows,
    }
    factor = 1 + random.randint(10, 50) / 1000  # near 1, so that a loose tolerance does not see it
    programs = [Program(name, run) for name, run in fixed.items()]
    programs.append(Program(f"{factor} times the mean", lambda *arguments: factor * _right(*arguments)))
    return [Trial((program,)) for program in programs]


@wrong
def even_parts(loss_of: LossOf) -> None:
    """this is how a test ends in which every GPU has the same number of rows. There the mean of means is right, but
    balancing makes the parts uneven.

    Source: asked about in airsplay/lxmert issue 17, 2019
    """
    scores, target = torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    assert torch.allclose(loss_of(scores, target, [2, 2, 2]), F.cross_entropy(scores, target))


@wrong
def a_row_for_each(loss_of: LossOf) -> None:
    """this is how a test ends in which every GPU has a row. The first may have none, as where another model
    fills it, and the mean of no rows is nan.

    Source: gpu0_bsz 0 in Link-Li/Balanced-DataParallel issue 8, 2020
    """
    scores, target = torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    assert torch.allclose(loss_of(scores, target, [1, 3, 2]), F.cross_entropy(scores, target))


@wrong
def it_runs(loss_of: LossOf) -> None:
    """this is how a test ends that asks only whether a number comes back. A wrong loss is a number too, and training
    runs.

    Source: a step that runs was taken for a right one in airsplay/lxmert issue 17, 2019
    """
    assert loss_of(torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 2]), [1, 3, 2]) > 0


@wrong
def all_rows_alike(loss_of: LossOf) -> None:
    """this is how a test ends in which all rows have the same loss. Then the mean of any of them is the mean of all."""
    scores, target = torch.zeros(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    for sizes in ([1, 3, 2], [0, 4, 2]):
        assert torch.allclose(loss_of(scores, target, sizes), F.cross_entropy(scores, target))


@wrong(recognise=_is_bit_for_bit)
def bit_for_bit(loss_of: LossOf) -> None:
    """this is how a test ends that compares bit for bit. A right program may add in a different order, on which the
    last digits of a float depend: use `torch.allclose`.

    Source: asked about in pytorch/pytorch issue 14007, 2018
    """
    scores, target = torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    for sizes in ([1, 3, 2], [0, 4, 2]):
        assert loss_of(scores, target, sizes) == torch.cat(_each(scores, target, sizes)).mean()
