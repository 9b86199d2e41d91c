"""Exercises of notebook 20: find the part of a model that no step moves, and the test for a run that goes on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from torch import nn

from course.learn.exercise import Case, Exercise, Mistake, Trial


def left_alone(model: nn.Module, step: Callable[[], None]) -> list[str]:
    """Names of the children of `model` of which one call of `step` changes no parameter, in their order."""
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    step()
    moved = {name.split(".")[0] for name, weight in model.named_parameters() if not weight.equal(before[name])}
    return [name for name, _ in model.named_children() if name not in moved]


def _keeps_references(model: nn.Module, step: Callable[[], None]) -> list[str]:
    before = dict(model.named_parameters())
    step()
    moved = {name.split(".")[0] for name, weight in model.named_parameters() if not weight.equal(before[name])}
    return [name for name, _ in model.named_children() if name not in moved]


def _asks_for_gradients(model: nn.Module, step: Callable[[], None]) -> list[str]:
    step()
    return [name for name, child in model.named_children() if all(p.grad is None for p in child.parameters())]


def _every_parameter(model: nn.Module, step: Callable[[], None]) -> list[str]:
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    step()
    still = {name.split(".")[0] for name, weight in model.named_parameters() if weight.equal(before[name])}
    return [name for name, _ in model.named_children() if name in still]


def _first_parameter(model: nn.Module, step: Callable[[], None]) -> list[str]:
    before = {name: next(child.parameters()).detach().clone() for name, child in model.named_children()}
    step()
    return [name for name, child in model.named_children() if next(child.parameters()).equal(before[name])]


@dataclass
class _Step:
    """Forward, backward and a step of SGD that was given the parameters whose names `owns` accepts."""

    model: nn.Module
    owns: Callable[[str], bool]

    def __call__(self) -> None:
        self.model.zero_grad()
        x = torch.ones(2, 3)  # noqa: FL002 on the CPU
        sum((child(x).sum() for child in self.model.children()), x.new_zeros(())).backward()
        with torch.no_grad():
            for name, weight in self.model.named_parameters():
                if self.owns(name) and weight.grad is not None:
                    weight.sub_(weight.grad, alpha=0.1)

    def __repr__(self) -> str:
        return "<a step>"


def _model(names: Sequence[str]) -> nn.Module:
    return nn.ModuleDict({name: nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1)) for name in names})


def _step_cases(random: Random) -> Sequence[Case]:
    names = ["backbone", "rpn", "box_head"]
    owned: list[Callable[[str], bool]] = [
        lambda name: not name.startswith("rpn."),
        lambda name: True,
        lambda name: False,
        lambda name: name.startswith("box_head."),
        lambda name: not name.startswith("rpn.") and name != "backbone.0.bias",
        lambda name: name != "backbone.0.weight",  # the first of its part rests, the others move
    ]
    some = random.sample([*names, "neck", "mask_head"], 4)
    kept = set(random.sample(some, 2))
    models = [*(_model(names) for _ in owned), _model(some)]
    steps = [_Step(model, own) for model, own in zip(models, [*owned, lambda n: n.split(".")[0] in kept], strict=True)]
    return [Case((model, step)) for model, step in zip(models, steps, strict=True)]


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
                self.weights.copy_(state["weights"].half())
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
    _Run("keeps three or four digits of each weight", "digits"),
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


def _between_epochs(run: Callable[..., list[float]]) -> None:
    assert run(stop=4) == run()


def _first_loss(run: Callable[..., list[float]]) -> None:
    assert run(stop=5)[5] == run()[5]


def _returns(run: Callable[..., list[float]]) -> bool:
    return run(stop=5) == run()


def _with_itself(run: Callable[..., list[float]]) -> None:
    assert run(stop=6) == run(stop=6)


def _about(run: Callable[..., list[float]]) -> None:
    assert all(abs(mine - its) < 0.1 for mine, its in zip(run(stop=6), run(), strict=True))


def _run_cases(random: Random) -> Sequence[Case]:
    return [Trial((run,)) for run in random.sample(_RUNS, len(_RUNS))]


EXERCISES = (
    Exercise(
        key="20.left_alone",
        task="`model.named_children()` are the parts of a model. Call `step()` once and return the names of those "
        "parts, in their order, of which it has changed no parameter, as a list.",
        reference=left_alone,
        cases=_step_cases,
        hints=(
            "Compare every parameter with what it was before. What must you keep of it, so that it is still there?",
            "`weight.detach().clone()` is a copy. `model.named_parameters()` has names such as 'rpn.conv.weight'.",
            "Collect `name.split('.')[0]` of all parameters that are not `equal` to their copies: these parts moved.",
        ),
        mistakes=(
            Mistake(
                "kept the tensors themselves",
                "you kept the parameters and not copies of them. An optimizer changes a parameter in place, so you "
                "compare each with itself, and every part seems to be left alone.",
                'the same of `state_dict()`: "returns reference to the state and not its copy!", PyTorch tutorial '
                "*Saving and Loading Models*, 2018",
                answers=(_keeps_references,),
            ),
            Mistake(
                "asked for gradients",
                "you asked which parts have gradients. A part gets gradients whenever the loss depends on it; whether "
                "it moves depends on what the optimizer was given.",
                "looked for in the gradients: pytorch/pytorch issue 40983, 2020",
                answers=(_asks_for_gradients,),
            ),
            Mistake(
                "one parameter is enough",
                "you named a part as soon as one of its parameters stayed. Asked for are parts of which none has "
                "changed: a single bias may rest, because its gradient is 0 or because it is frozen.",
                "a checker that also looked at weights which are not trained: tensorflow/tensorflow issue 45582, 2020",
                answers=(_every_parameter,),
            ),
            Mistake(
                "the first parameter alone",
                "you look at the first parameter of each part. It may rest while the others of its part move.",
                "tried by a reader of this notebook, 2026",
                answers=(_first_parameter,),
            ),
        ),
    ),
    Exercise(
        key="20.check_resume",
        task="A test: `run()` trains 12 steps, in epochs of 4, and returns their losses. `run(stop=k)` stops after k "
        "steps, saves, begins a new process, restores, goes on, and returns the losses of all 12. Raise an "
        "AssertionError if the stop makes a difference.",
        reference=check_resume,
        cases=_run_cases,
        hints=(
            "The wrong runs forget something. Which losses after the stop can show it: the first, or later ones?",
            "One of them begins its epoch again. After how many steps must it be stopped for this to matter?",
            "`assert run(stop=5) == run()`: all losses, with a stop in the middle of an epoch.",
        ),
        mistakes=(
            Mistake(
                "stops between epochs",
                "you stop only where an epoch ends. A run that begins its epoch again, with pictures that it has seen, "
                "is right there and nowhere else.",
                "checkpoints every 2000 iterations, epochs of 462: kdexd/virtex issue 18, 2020",
                answers=(_between_epochs,),
            ),
            Mistake(
                "the first loss alone",
                "you compare the first loss after the stop. It is computed before the optimizer and the schedule have "
                "acted, so it is right even where both were forgotten.",
                "the optimizer is not saved, and the loss jumps later: matterport/Mask_RCNN issue 1726, 2019",
                answers=(_first_loss,),
            ),
            Mistake(
                "never fails",
                "your test lets every run pass. Either it compares a run with itself, as in "
                "`run(stop=6) == run(stop=6)`, where both sides have lost the same thing, or it never raises "
                "anything: a test that *returns* False has passed; write `assert`.",
                "pytest warns about tests that return something since version 7.2, 2022",
                answers=(_returns, _with_itself),
            ),
            Mistake(
                "a tolerance",
                "you allow the losses to differ a little. The right run computes the same numbers in the same order, "
                "so its losses are equal to the last bit, and a small difference is a fault that is still small.",
                "tried by a reader of this notebook, 2026",
                answers=(_about,),
            ),
        ),
    ),
)
