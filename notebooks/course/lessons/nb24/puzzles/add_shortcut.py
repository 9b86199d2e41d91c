"""Add x to every group of out, without a copy of x."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from course.kit.learn.exercise import Case
from course.kit.learn.guarded import Guarded
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb24.cases import close

hints = (
    "Broadcasting repeats without copying. It needs an axis of size 1 where the groups are.",
    "`out.unflatten(1, (groups, -1))` is (B, groups, C, H, W). Which shape must x have?",
    "`(out.unflatten(1, (groups, -1)) + x.unsqueeze(1)).flatten(1, 2)`",
)


def add_shortcut(out: Tensor, x: Tensor, groups: int) -> Tensor:
    """`out` (B, groups * C, H, W) plus x (B, C, H, W) on the C channels of every group, without a copy of x."""
    return (out.unflatten(1, (groups, -1)) + x.unsqueeze(1)).flatten(1, 2)


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


def cases(random: Random) -> Sequence[Case]:
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    cases = []
    for _ in range(6):
        groups, channels, side = random.randint(2, 6), random.randint(2, 5), random.randint(2, 5)
        out = torch.randn(2, groups * channels, side, side, generator=generator)
        cases.append(_NoCopy((out, torch.randn(2, channels, side, side, generator=generator), groups)))
    return cases


agree = close


@wrong
def interleaved(out, x, groups):
    """this is what interleaved copies give: channel 0 `groups` times, then channel 1. The groups of a convolution
    follow one after the other. The shape is the same, the sum is not.

    Source: expected the other way round in Theano/Theano issue 6297, 2017
    """
    return out + x.repeat_interleave(groups, dim=1)


@also(interleaved)
def _(out, x, groups):
    return (out.unflatten(1, (-1, groups)) + x.unsqueeze(2)).flatten(1, 2)


@wrong
def copies_of_x(out, x, groups):
    """x was copied here, once for every group. Broadcasting reads the one x as often as it is needed.

    Source: the post of this notebook, about 2019, joins twelve of them
    """
    return out + torch.cat([x] * groups, dim=1)
