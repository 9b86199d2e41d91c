"""A test: it calls `train(steps)` and `alone(steps)`, which train a new model on two GPUs and on one from the same
weights, and return the loss of each step. It raises an AssertionError where `train` works with old weights. It passes
on right programs and fails on wrong ones.
"""

import copy
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course.kit.learn.exercise import Case, Program, Trial
from course.kit.learn.puzzle import wrong

Losses = Callable[[int], list[float]]

hints = (
    "In which step is a replica older than its model for the first time?",
    "Two steps or more. Compare each loss with that of one GPU, because an old replica makes the loss fall as well.",
    "`torch.testing.assert_close(train(4), alone(4))`",
)


def check_training(train: Losses, alone: Losses) -> None:
    torch.testing.assert_close(train(4), alone(4))


class _Run:
    """A model, its rows on one GPU and in halves, and an optimizer: what a training starts from."""

    def __init__(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.net = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))
        for weight in self.net.parameters():
            weight.data = torch.randn(weight.shape, generator=generator)
        self.net.to("cuda:0")
        self.rows = torch.randn(8, 6, generator=generator).to("cuda:0")
        self.labels = torch.randint(3, (8,), generator=generator).to("cuda:0")
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.5)

    def step(self, models: Sequence[nn.Module]) -> float:
        """One step in which each model computes its share of the rows, on its GPU."""
        shares = [part.to(f"cuda:{k}") for k, part in enumerate(self.rows.chunk(len(models)))]
        scores = torch.cat([model(part).to("cuda:0") for model, part in zip(models, shares, strict=True)])
        return self.change([F.cross_entropy(scores, self.labels)])

    def change(self, losses: Sequence[Tensor]) -> float:
        self.optimizer.zero_grad()
        for loss in losses:
            loss.backward()
        self.optimizer.step()
        return sum(loss.item() for loss in losses)

    def new(self) -> Any:
        return nn.parallel.replicate(self.net, [0, 1])


def _on_one(seed: int, steps: int) -> list[float]:
    run = _Run(seed)
    return [run.step([run.net]) for _ in range(steps)]


def _new_in_each_step(seed: int, steps: int) -> list[float]:
    run = _Run(seed)
    return [run.step(run.new()) for _ in range(steps)]


def _a_backward_for_each(seed: int, steps: int) -> list[float]:
    """New replicas, and each half's share of the loss by itself: right, with sums in a different order."""
    run, losses = _Run(seed), []
    for _ in range(steps):
        parts = []
        for k, (model, rows, labels) in enumerate(zip(run.new(), run.rows.chunk(2), run.labels.chunk(2), strict=True)):
            scores = model(rows.to(f"cuda:{k}")).to("cuda:0")
            parts.append(F.cross_entropy(scores, labels, reduction="sum") / len(run.labels))
        losses.append(run.change(parts))
    return losses


def _made_once(seed: int, steps: int) -> list[float]:
    run = _Run(seed)
    kept = [run.net, run.new()[1]]
    return [run.step(kept) for _ in range(steps)]


def _every_second_step(seed: int, steps: int) -> list[float]:
    run, losses = _Run(seed), []
    for k in range(steps):
        if k % 2 == 0:
            kept = [run.net, run.new()[1]]
        losses.append(run.step(kept))
    return losses


def _copied_once(seed: int, steps: int) -> list[float]:
    run = _Run(seed)
    kept = [run.net, copy.deepcopy(run.net).to("cuda:1")]
    return [run.step(kept) for _ in range(steps)]


_RIGHT = {"new replicas in each step": _new_in_each_step, "a backward for each GPU": _a_backward_for_each}
_WRONG = {
    "a replica that was made once": _made_once,
    "new replicas in every second step": _every_second_step,
    "a copy that was made once": _copied_once,
}


def cases(random: Random) -> Sequence[Case]:
    """Right programs and wrong ones, in any order, each from weights of its own."""
    cases, programs = [], list((_RIGHT | _WRONG).items())
    random.shuffle(programs)
    for words, program in programs:
        seed = random.randrange(2**31)
        on_two = Program(words, lambda steps, run=program, seed=seed: run(seed, steps))
        cases.append(Trial((on_two, Program("one GPU", lambda steps, seed=seed: _on_one(seed, steps)))))
    return cases


def _refuses_a_right_program(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    """Every wrong program fails, and so does a right one, by an assertion."""
    ended = {case.args[0].words: end for case, end in zip(cases, given, strict=True)}
    refused = [ended[words] for words in _RIGHT if not ended[words].passed]
    return bool(refused) and all(end.why.startswith("AssertionError") for end in refused)


@wrong
def never_fails(train: Losses, alone: Losses) -> None:
    """every program passes this test. So ends one that looks at the first step alone, where every replica is still new;
    one that asks whether the loss falls, which it does with old replicas, too; and one that *returns* what it finds
    where it should `assert`.

    Source: pytest warns about tests that return something since version 7.2, 2022
    """
    torch.testing.assert_close(train(1), alone(1))


@wrong(recognise=_refuses_a_right_program)
def right_programs_fail(train: Losses, alone: Losses) -> None:
    """a right program does not pass this test. Two GPUs add in a different order than one, on which the last digits of
    a float depend, so compare within a tolerance, as `torch.testing.assert_close` does.

    Source: asked about in pytorch/pytorch issue 14007, 2018
    """
    assert train(4) == alone(4)
