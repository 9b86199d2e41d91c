"""A test for `run()`, which trains for some steps and returns the losses as a float32 tensor: pass where two runs give
the same bits in every step, and raise an error otherwise.
"""

import random as python
from collections.abc import Callable, Sequence
from functools import partial
from random import Random

import numpy as np
import torch
from torch import Tensor

from course.kit.learn.exercise import Case, Program, Trial
from course.kit.learn.puzzle import also, wrong

hints = (
    "A diverged run has NaN in its losses, and may repeat all the same. Is a NaN equal to itself?",
    "`losses.view(torch.int32)` looks at the same memory as whole numbers.",
    "`assert torch.equal(run().view(torch.int32), run().view(torch.int32))`",
)

Run = Callable[[], Tensor]


def _falling(steps: int) -> Tensor:
    torch.manual_seed(404)
    return torch.rand(steps).sort(descending=True).values


def _diverged(steps: int) -> Tensor:
    losses = _falling(steps)
    losses[3:] = float("nan")
    return losses


class _Drawn:
    """A run whose first calls differ: at `place`, by what `draw` gives."""

    def __init__(self, steps: int, place: int, draw: Callable[[], float]) -> None:
        self.steps, self.place, self.draw = steps, place, draw

    def __call__(self) -> Tensor:
        losses = _falling(self.steps)
        losses[self.place] += self.draw()
        return losses


class _LastBit:
    """Every second run differs in the last bit of one loss."""

    def __init__(self, steps: int) -> None:
        self.steps, self.calls = steps, 0

    def __call__(self) -> Tensor:
        losses = _falling(self.steps)
        self.calls += 1
        losses.view(torch.int32)[4] += self.calls % 2
        return losses


class _Later:
    """The first run is another one: it leaves a generator where the second begins."""

    def __init__(self, steps: int) -> None:
        self.steps, self.generator = steps, torch.Generator().manual_seed(1)

    def __call__(self) -> Tensor:
        return torch.rand(self.steps, generator=self.generator)


class _Diverges:
    """The second run diverges, and the first does not."""

    def __init__(self, steps: int) -> None:
        self.steps, self.calls = steps, 0

    def __call__(self) -> Tensor:
        self.calls += 1
        return (_falling if self.calls % 2 else _diverged)(self.steps)


def cases(random: Random) -> Sequence[Case]:
    """Two right runs and six wrong ones; where two of them differ is drawn."""
    steps = random.randint(8, 99)
    place = random.randrange(1, steps - 1)
    made: dict[str, Callable[[], Run]] = {
        "a right run": lambda: partial(_falling, steps),
        "a right run that diverges": lambda: partial(_diverged, steps),
        f"NumPy is not seeded, and draws before loss {place}": lambda: _Drawn(steps, place, np.random.random),
        "Python is not seeded, and draws before the last loss": lambda: _Drawn(steps, -1, python.random),
        "Python is not seeded, and draws before the first loss": lambda: _Drawn(steps, 0, python.random),
        "the last bit of one loss": lambda: _LastBit(steps),
        "a generator goes on from run to run": lambda: _Later(steps),
        "every second run diverges": lambda: _Diverges(steps),
    }
    return [Anew((f"{words}, {steps} steps", make)) for words, make in made.items()]


class Anew(Trial):
    """A run that is made for each call, because some of them count. args: the words, and what makes the run."""

    def call(self, function: Callable[..., object]) -> object:
        return Trial((Program(self.args[0], self.args[1]()),)).call(function)

    def show(self, name: str) -> str:
        return f"{name}(<{self.args[0]}>)"


def check_repeats(run: Run) -> None:
    assert torch.equal(run().view(torch.int32), run().view(torch.int32))


@wrong
def numbers_instead_of_bits(run: Run) -> None:
    """this is how a test ends that compares numbers. A NaN is unequal to itself, so a run that diverges and repeats
    fails.

    Source: pytorch/pytorch issue 137337, 2024: `torch.equal(x, x)` is False with a NaN in x
    """
    assert torch.equal(run(), run())


@wrong
def nearly_equal(run: Run) -> None:
    """this is how a test ends that allows a tolerance. A last bit that differs passes, and spreads in the steps that
    follow.
    """
    torch.testing.assert_close(run(), run(), equal_nan=True)


@wrong
def nearly_equal_and_no_NaN(run: Run) -> None:
    """this is how a test ends that allows a tolerance and no NaN. A run that diverges and repeats fails, and a last bit
    passes.
    """
    assert torch.allclose(run(), run())


@wrong
def the_last_loss(run: Run) -> None:
    """this is how a test ends that compares the last loss alone."""
    assert torch.equal(run()[-1].view(torch.int32), run()[-1].view(torch.int32))


@wrong
def the_first_loss(run: Run) -> None:
    """this is how a test ends that compares the first loss alone. Nothing has been drawn by then in many a run."""
    assert torch.equal(run()[0].view(torch.int32), run()[0].view(torch.int32))


@wrong
def seeds_first(run: Run) -> None:
    """this is how a test ends that seeds the generators before each run. It makes runs repeat that do not repeat by
    themselves.
    """
    results = []
    for _ in range(2):
        torch.manual_seed(0)
        np.random.seed(0)
        python.seed(0)
        results.append(run().view(torch.int32))
    assert torch.equal(*results)


@wrong
def one_run(run: Run) -> None:
    """this is how a test ends that calls `run` once, or compares a result with itself."""
    losses = run()
    assert torch.equal(losses.view(torch.int32), losses.view(torch.int32))


@also(one_run)
def without_losses(run: Run) -> None:
    assert len(run()) > 0
