"""A test: `run()` trains 12 steps, in epochs of 4, and returns their losses. `run(stop=k)` stops after k steps, saves,
begins a new process, restores, goes on, and returns the losses of all 12. Raise an AssertionError if the stop makes
a difference.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch

from course.kit.learn.exercise import Case, Trial
from course.kit.learn.puzzle import also, wrong

hints = (
    "The wrong runs forget something. Which losses after the stop can show it: the first, or later ones?",
    "One of them begins its epoch again. After how many steps must it be stopped for this to matter?",
    "`assert run(stop=5) == run()`: all losses, with a stop in the middle of an epoch.",
)


STEPS, EPOCH = 12, 4


@dataclass(frozen=True)
class _Run:
    """Twelve steps of a small training; calling it gives their losses. `forgets`: what its checkpoint lacks."""

    words: str
    forgets: str = ""

    def __call__(self, stop: int | None = None) -> list[float]:
        first = _Trainer()
        losses = first.steps(0, STEPS if stop is None else stop)
        if stop is None:
            return losses
        second = _Trainer()
        begin = second.restore(first.state(stop), self.forgets)
        return losses + second.steps(begin, begin + STEPS - stop)

    def __repr__(self) -> str:
        return f"<a run that {self.words}>"


class _Trainer:
    """A line fitted to 8 points, in epochs of four steps, with momentum, a falling learning rate and noise."""

    def __init__(self) -> None:
        self.weights = torch.zeros(2, dtype=torch.float64, requires_grad=True)
        self.optimizer = torch.optim.SGD([self.weights], lr=0.1, momentum=0.9)
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.8)
        self.noise = torch.Generator().manual_seed(5)

    def steps(self, first: int, last: int) -> list[float]:
        losses = []
        for step in range(first, last):
            x = torch.tensor([step % EPOCH, 4 + step % EPOCH], dtype=torch.float64)  # noqa: FL002 on the CPU
            y = 3 * x + torch.rand(2, generator=self.noise, dtype=torch.float64)
            loss = (self.weights[0] * x / 8 + self.weights[1] - y).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            losses.append(loss.item())
        return losses

    def state(self, step: int) -> dict[str, Any]:
        parts = {"optimizer": self.optimizer.state_dict(), "schedule": self.schedule.state_dict()}
        return {**parts, "weights": self.weights.detach().clone(), "noise": self.noise.get_state(), "step": step}

    def restore(self, state: dict[str, Any], forgets: str) -> int:
        """Take over all but what is forgotten; returns the number of the next step."""
        with torch.no_grad():
            if forgets == "digits":
                self.weights.copy_(state["weights"].float())
            elif forgets != "weights":
                self.weights.copy_(state["weights"])
        rate = state["optimizer"]["param_groups"][0]["lr"]
        if forgets != "optimizer":
            self.optimizer.load_state_dict(state["optimizer"])
        self.optimizer.param_groups[0]["lr"] = rate  # the schedule's, whatever becomes of the momentum
        if forgets != "schedule":
            self.schedule.load_state_dict(state["schedule"])
        else:
            self.schedule = torch.optim.lr_scheduler.ExponentialLR(_fresh(self.optimizer), 0.8)
        if forgets != "noise":
            self.noise.set_state(state["noise"])
        done = int(state["step"])
        return done - done % EPOCH if forgets == "epoch" else 0 if forgets == "step" else done


def _fresh(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    for group in optimizer.param_groups:
        group["lr"] = group["initial_lr"]
    return optimizer


_RUNS = (
    _Run("goes on as if it had never stopped"),
    _Run("forgets the weights", "weights"),
    _Run("saves its float64 weights as float32", "digits"),
    _Run("forgets the optimizer's momentum", "optimizer"),
    _Run("forgets the schedule", "schedule"),
    _Run("forgets the random numbers", "noise"),
    _Run("counts its steps from 0 again", "step"),
    _Run("begins the epoch again in which it was stopped", "epoch"),
)


def check_resume(run: Callable[..., list[float]]) -> None:
    """Raises unless a run that is stopped, in an epoch or between two, has the losses of one that never stopped.

    One stop in the middle of an epoch would do for these runs, and so would the last loss after it, because none of
    them comes back to the right losses once it has left them.
    """
    for stop in (4, 5, 7):
        assert run(stop=stop) == run(), f"stopped after {stop} steps, the run goes on differently"


def _about(tolerance: float) -> Callable[[Callable[..., list[float]]], None]:
    def test(run: Callable[..., list[float]]) -> None:
        assert all(abs(mine - its) <= tolerance for mine, its in zip(run(stop=6), run(), strict=True))

    return test


def _about_relative(tolerance: float) -> Callable[[Callable[..., list[float]]], None]:
    def test(run: Callable[..., list[float]]) -> None:
        assert all(abs(mine - its) <= tolerance * its for mine, its in zip(run(stop=6), run(), strict=True))

    return test


def cases(random: Random) -> Sequence[Case]:
    return [Trial((run,)) for run in random.sample(_RUNS, len(_RUNS))]


@wrong
def stops_between_epochs(run: Callable[..., list[float]]) -> None:
    """this is how a test ends that stops only where an epoch ends. A run that begins its epoch again, with pictures
    that it has seen, is right there and nowhere else.

    Source: checkpoints every 2000 iterations, epochs of 462: kdexd/virtex issue 18, 2020
    """
    assert run(stop=4) == run()


@wrong
def the_first_loss_alone(run: Callable[..., list[float]]) -> None:
    """this is how a test ends that compares the first loss after the stop. It is computed before the optimizer and the
    schedule have acted, so it is right even where both were forgotten.

    Source: the optimizer is not saved, and the loss jumps later: matterport/Mask_RCNN issue 1726, 2019
    """
    assert run(stop=5)[5] == run()[5]


@wrong
def never_fails(run: Callable[..., list[float]]) -> bool:
    """this test lets every run pass. Either it compares a run with itself, as in `run(stop=6) == run(stop=6)`, where
    both sides have lost the same thing, or it never raises anything: a test that *returns* False has passed; write
    `assert`.

    Source: pytest warns about tests that return something since version 7.2, 2022
    """
    return run(stop=5) == run()


@also(never_fails)
def with_itself(run: Callable[..., list[float]]) -> None:
    assert run(stop=6) == run(stop=6)


@wrong
def a_tolerance(*given):
    """this is how a test ends that allows the losses to differ a little. The right run computes the same numbers in the
    same order, so its losses are equal to the last bit, and a small difference is a fault that is still small.
    """
    return _about(0.1)(*given)


also(a_tolerance)(_about(1e-4))
also(a_tolerance)(_about_relative(0.1))


@wrong
def a_jump(run: Callable[..., list[float]]) -> None:
    """this is how a test ends that looks for a jump of the loss at the stop. A loss rises and falls from batch to
    batch, and most of what is forgotten makes no jump. Compare with the run that never stopped.

    Source: seen as a jump, once it is large: matterport/Mask_RCNN issue 1726, 2019
    """
    losses = run(stop=6)
    assert losses[6] <= losses[5]
