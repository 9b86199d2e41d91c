"""Leave in `net`, which has no gradient yet, that of the mean cross-entropy over all rows. Only `size` rows at a time
go through, and back.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from course.kit.learn.exercise import TODO, Case
from course.kit.learn.puzzle import also, wrong

hints = (
    "Gradients add up, and so do sums of losses. What do all rows have in common?",
    '`cross_entropy(..., reduction="sum")` is the sum over the rows of a piece; the number of *all* rows divides it.',
    "In a loop over `zip(rows.split(size), labels.split(size))`: "
    '`(cross_entropy(net(some), those, reduction="sum") / len(rows)).backward()`',
)


@dataclass(frozen=True)
class Left:
    """What a call leaves: the gradient, and whether the activations of more rows were kept at once than are allowed."""

    gradient: tuple[float, ...]
    too_many: bool

    def __repr__(self) -> str:
        numbers = ", ".join(f"{number:.4f}" for number in self.gradient[:3])
        return f"the gradient [{numbers}, ...]{', with too many rows at once' if self.too_many else ''}"


class _Net(nn.Linear):
    """A classifier of three numbers that notes the most rows that it has got and that have not gone back yet."""

    most = under_way = 0

    def forward(self, rows: Tensor) -> Tensor:
        out = super().forward(rows)
        if out.requires_grad:
            self.under_way += len(rows)
            self.most = max(self.most, self.under_way)
            out.register_hook(lambda gradient: self._went_back(len(rows)))
        return out

    def _went_back(self, rows: int) -> None:
        self.under_way -= rows


class _Batch(Case):
    """args: the rows, their labels, and `size`. Each call gets a net of its own, without a gradient."""

    def call(self, function: Callable[..., Any]) -> Any:
        rows, labels, size = self.args
        net = _Net(3, 4)
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.copy_(torch.arange(parameter.numel()).view_as(parameter) / 7)
        if function(net, rows, labels, size) is TODO:
            return TODO
        found = [parameter.grad for parameter in net.parameters()]
        return Left(
            tuple(torch.cat([g.flatten() for g in found if g is not None] or [torch.zeros(0)]).tolist()),
            net.most > size,
        )


def accumulate(net: nn.Module, rows: Tensor, labels: Tensor, size: int) -> None:
    for some, those in zip(rows.split(size), labels.split(size), strict=True):
        (cross_entropy(net(some), those, reduction="sum") / len(rows)).backward()


def cases(random: Random) -> Sequence[Case]:
    """Pieces of equal sizes first; then the last one is smaller."""
    generator = torch.Generator().manual_seed(random.randrange(2**32))

    def batch(count: int, size: int) -> Case:
        rows = torch.rand(count, 3, generator=generator)
        return _Batch((rows, torch.randint(4, (count,), generator=generator), size))

    drawn = [batch(random.randint(5, 20), random.randint(2, 4)) for _ in range(4)]
    return [batch(8, 2), batch(10, 4), batch(3, 8), *drawn]


def agree(given: object, expected: Left) -> bool:
    """Equal gradients up to rounding, and never more rows at once than are allowed."""
    return (
        isinstance(given, Left)
        and given.too_many == expected.too_many
        and len(given.gradient) == len(expected.gradient)
        and all(abs(a - b) < 1e-5 for a, b in zip(given.gradient, expected.gradient, strict=True))
    )


@wrong
def sum_of_means(net, rows, labels, size):
    """this is the sum of the pieces' means: the gradient is as many times too large as there are pieces."""
    for some, those in zip(rows.split(size), labels.split(size), strict=True):
        cross_entropy(net(some), those).backward()


@wrong
def mean_of_means(net, rows, labels, size):
    """this is the mean of the pieces' means. It is right where all pieces have equally many rows. A last piece with
    fewer rows gives each of them more weight.

    Source: huggingface/transformers issue 34242, 2024
    """
    pieces = rows.split(size)
    for some, those in zip(pieces, labels.split(size), strict=True):
        (cross_entropy(net(some), those) / len(pieces)).backward()


@wrong
def the_sum(net, rows, labels, size):
    """this is the gradient of the sum over all rows. The mean is asked for: the number of *all* rows divides it."""
    for some, those in zip(rows.split(size), labels.split(size), strict=True):
        cross_entropy(net(some), those, reduction="sum").backward()


@wrong
def divided_by_the_size(net, rows, labels, size):
    """the sums are divided by the rows of a piece and not by those of the batch."""
    for some, those in zip(rows.split(size), labels.split(size), strict=True):
        (cross_entropy(net(some), those, reduction="sum") / size).backward()


@wrong
def all_at_once(net, rows, labels, size):
    """the gradient is right, and the activations of all rows were kept at once: all rows went through the net together,
    or no piece went back before the next one came.
    """
    cross_entropy(net(rows), labels).backward()


@also(all_at_once)
def one_backward_at_the_end(net, rows, labels, size):
    pieces = zip(rows.split(size), labels.split(size), strict=True)
    sums = [cross_entropy(net(some), those, reduction="sum") for some, those in pieces]
    (torch.stack(sums).sum() / len(rows)).backward()


@wrong
def the_last_piece_is_left_out(net, rows, labels, size):
    """the last piece, which has fewer rows, is left out."""
    whole = len(rows) // size * size
    for some, those in zip(rows[:whole].split(size), labels[:whole].split(size), strict=True):
        if len(some):
            (cross_entropy(net(some), those, reduction="sum") / len(rows)).backward()
