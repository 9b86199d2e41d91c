"""Batch norm over all ranks: `x` (rows, columns) holds this rank's rows, and ranks may have different numbers of them.
Return (x - mean) / sqrt(variance + 1e-5) with mean and variance (divided by the count) of the rows of all ranks, as
a function that gradients pass through.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, distributed
from torch.distributed.nn.functional import all_gather, all_reduce

from course.kit.learn.exercise import TODO, Case
from course.kit.learn.puzzle import also, wrong
from course.kit.ranks import RanksFailed
from course.lessons.nb07.cases import OnRanks

hints = (
    "Means cannot be put together without counts; sums can. Which three sums make a mean and a variance?",
    "The sum of x, the sum of x squared, and the number of rows: stack them, and one all_reduce adds them up. "
    "`distributed.all_reduce` has no gradient; `torch.distributed.nn.functional.all_reduce` returns the sum "
    "and has one.",
    "mean = total / count, variance = squares / count - mean squared.",
)


@dataclass(frozen=True)
class Normalised:
    """Outputs and gradients of each rank's rows, one column."""

    outputs: list[list[float]]
    gradients: list[list[float]]

    def __repr__(self) -> str:
        def told(values: list[list[float]]) -> str:
            return " and ".join(f"[{', '.join(f'{value:.3f}' for value in own)}]" for own in values)

        if not self.outputs:
            return "an error, where a rank has no rows"
        return f"{told(self.outputs)} with the gradients {told(self.gradients)}"


class _Norm(OnRanks):
    """args: the rows of each rank, a number x for each. The columns are x and x squared.

    The gradient is that of a sum over the rows of both ranks.
    """

    def on_rank(self, function: Callable[..., Any]) -> Any:
        rank = distributed.get_rank()
        own = torch.tensor(self.args[0][rank], dtype=torch.float64)
        x = torch.stack([own, own.square()], 1).cuda().requires_grad_()  # noqa: FL001 the rank's own
        output = function(x)
        if output is TODO:
            return TODO
        weights = torch.arange(1.0, 1.0 + len(x), dtype=torch.float64, device=x.device).view(-1, 1)
        if output.requires_grad:
            (output * (weights + rank)).sum().backward()
        gradient = torch.zeros_like(x) if x.grad is None else x.grad
        return output.detach().flatten().tolist(), gradient.flatten().tolist()

    def failed(self, failed: RanksFailed) -> Any:
        """A rank without rows comes last: what fails with it alone is a result like others, and has none."""
        if all(self.args[0]):
            raise failed
        return Normalised([], [])

    def joined(self, given: list[Any]) -> Normalised:
        outputs, gradients = zip(*given, strict=True)
        return Normalised(list(outputs), list(gradients))

    def show(self, name: str) -> str:
        rows = " and ".join(f"[{', '.join(f'{row:g}' for row in own)}]" for own in self.args[0])
        return f"{name} of the columns x and x squared, with x {rows}"


def normalise(x: Tensor) -> Tensor:
    total, squares = x.sum(0, True), x.square().sum(0, True)
    total, squares, count = all_reduce(torch.stack([total, squares, torch.full_like(total, len(x))]))
    mean = total / count
    variance = squares / count - mean.square()
    return (x - mean) / (variance + 1e-5).sqrt()


def _global_mean(x: Tensor) -> Tensor:
    total = x.sum(0, True)
    total, count = all_reduce(torch.stack([total, torch.full_like(total, len(x))]))
    return total / count


def _of_all_rows(x: Tensor) -> Tensor:
    """The rows of all ranks, with their gradient: ranks with fewer rows send NaN besides."""
    counts: list[int] = [0] * distributed.get_world_size()
    distributed.all_gather_object(counts, len(x))
    padding = x.new_full((max(counts) - len(x), x.shape[1]), torch.nan)
    parts = all_gather(torch.cat([x, padding]))
    return torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])


def cases(random: Random) -> Sequence[Case]:
    def rows(count: int) -> list[float]:
        return [float(number) for number in random.sample(range(-9, 10), count)]

    drawn = [rows(random.randint(2, 5)), rows(random.randint(2, 5))]
    empty = [[rows(2), []], [[], rows(3)]]
    return [_Norm((parts,)) for parts in ([[1.0, 2.0, 4.0], [9.0, 7.0]], drawn, *empty)]


def _near(given: Any, expected: Normalised) -> bool:
    return _equal(given.outputs, expected.outputs) and _equal(given.gradients, expected.gradients)


def _equal(given: list[list[float]], expected: list[list[float]]) -> bool:
    mine, right = (torch.tensor([*chain(*values)], dtype=torch.float64) for values in (given, expected))
    return mine.shape == right.shape and torch.allclose(mine, right, rtol=1e-6, atol=1e-6, equal_nan=True)


def _outputs_of(answer: Callable[[Tensor], Tensor], cases: Sequence[Case], given: Sequence[Any]) -> bool:
    """Whether the values are those of `answer`, whatever the gradients are."""
    return all(_equal(one.outputs, case.call(answer).outputs) for case, one in zip(cases, given, strict=True))


def _as_unbiased(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return _outputs_of(unbiased_variance, cases, given)


def _as_one_mean(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return _outputs_of(one_mean_for_all_columns, cases, given)


agree = _near


@wrong
def own_rows(x: Tensor) -> Tensor:
    """this is what each rank gives that normalises by its own rows, as `nn.BatchNorm1d` does on several ranks.

    Source: asked about in ptrblck/pytorch_misc issue 5, 2019
    """
    return F.batch_norm(x, None, None, training=True)


@wrong
def mean_of_means(x: Tensor) -> Tensor:
    """this is what the mean of the ranks' means gives. They have different numbers of rows: add up sums and counts.

    Source: PaddlePaddle/Paddle issue 32464, 2021; pytorch/pytorch issue 22192, 2019
    """
    both = torch.stack([x.mean(0, True), x.square().mean(0, True)])
    mean, squares = all_reduce(both) / distributed.get_world_size()
    return (x - mean) / (squares - mean.square() + 1e-5).sqrt()


@wrong
def mean_of_variances(x: Tensor) -> Tensor:
    """this is what the mean of the ranks' variances gives. How far the means of the ranks are from each other is
    missing from it.

    Source: fyu/drn issue 26, 2018
    """
    mean, variance = all_reduce(torch.stack([x.mean(0, True), x.var(0, False, keepdim=True)])) / 2
    return (x - mean) / (variance + 1e-5).sqrt()


@wrong
def own_variance(x: Tensor) -> Tensor:
    """the mean is that of all rows, and the variance is that of each rank's own rows. It needs the rows of all ranks as
    the mean does: add up the squares, too.
    """
    return (x - _global_mean(x)) / (x.var(0, False, keepdim=True) + 1e-5).sqrt()


@also(own_variance)
def own_rows_around_the_mean(x: Tensor) -> Tensor:
    mean = _global_mean(x)
    return (x - mean) / ((x - mean).square().mean(0, True) + 1e-5).sqrt()


@wrong(recognise=partial(_outputs_of, normalise))
def no_gradient_through_the_sums(x: Tensor) -> Tensor:
    """the values are right, the gradients are not: the sums are constants to autograd, or send nothing in backward, as
    after `distributed.all_reduce`. A row moves the mean of all ranks, so the other ranks' losses depend on it.
    `torch.distributed.nn.functional.all_reduce` has a gradient.

    Source: what pytorch/pytorch pull request 36382, 2020, repairs in SyncBatchNorm
    """
    sums = torch.stack([x.sum(0, True), x.square().sum(0, True), x.new_full((1, x.shape[1]), len(x))]).detach()
    distributed.all_reduce(sums)
    mean = sums[0] / sums[2]
    return (x - mean) / (sums[1] / sums[2] - mean.square() + 1e-5).sqrt()


@also(no_gradient_through_the_sums)
def gradient_stays_local(x: Tensor) -> Tensor:
    """What torch makes of an in-place all_reduce of a tensor with a history: its backward sends nothing."""
    sums = torch.stack([x.sum(0, True), x.square().sum(0, True), x.new_full((1, x.shape[1]), len(x))])
    everybody = sums.detach().clone()
    distributed.all_reduce(everybody)
    total, squares, count = sums + (everybody - sums.detach())
    mean = total / count
    return (x - mean) / (squares / count - mean.square() + 1e-5).sqrt()


@also(no_gradient_through_the_sums)
def in_place(x: Tensor) -> Tensor:
    sums = [x.sum(0, True), x.square().sum(0, True), x.new_full((1, x.shape[1]), len(x))]
    for part in sums:
        distributed.all_reduce(part)
    mean = sums[0] / sums[2]
    return (x - mean) / (sums[1] / sums[2] - mean.square() + 1e-5).sqrt()


@wrong(recognise=_as_unbiased)
def unbiased_variance(x: Tensor) -> Tensor:
    """this is what the unbiased variance gives, the default of `Tensor.var`: it divides by the count - 1. Batch norm
    divides by the count.
    """
    rows = _of_all_rows(x)
    return (x - rows.mean(0)) / (rows.var(0) + 1e-5).sqrt()


@wrong(recognise=_as_one_mean)
def one_mean_for_all_columns(x: Tensor) -> Tensor:
    """this is what a single mean and variance of all numbers give. Each column has its own: sum over dim 0."""
    rows = _of_all_rows(x)
    return (x - rows.mean()) / (rows.var(unbiased=False) + 1e-5).sqrt()
