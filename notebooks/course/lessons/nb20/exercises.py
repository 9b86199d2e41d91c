"""Exercises of notebook 20: find the part of a model that no step moves, and the test for a run that goes on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from torch import nn

from course.kit.learn.exercise import Case, Exercise, Mistake, Trial


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


def _one_number(model: nn.Module, step: Callable[[], None]) -> list[str]:
    before = {name: sum(p.sum().item() for p in child.parameters()) for name, child in model.named_children()}
    step()
    after = {name: sum(p.sum().item() for p in child.parameters()) for name, child in model.named_children()}
    return [name for name in after if after[name] == before[name]]


def _norm(model: nn.Module, step: Callable[[], None]) -> list[str]:
    before = {name: [p.norm().item() for p in child.parameters()] for name, child in model.named_children()}
    step()
    after = {name: [p.norm().item() for p in child.parameters()] for name, child in model.named_children()}
    return [name for name in after if after[name] == before[name]]


def _begins_with(model: nn.Module, step: Callable[[], None]) -> list[str]:
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    step()
    moved = [name for name, weight in model.named_parameters() if not weight.equal(before[name])]
    return [part for part, _ in model.named_children() if not any(name.startswith(part) for name in moved)]


def _last_parameter(model: nn.Module, step: Callable[[], None]) -> list[str]:
    before = {name: list(child.parameters())[-1].detach().clone() for name, child in model.named_children()}
    step()
    return [name for name, child in model.named_children() if list(child.parameters())[-1].equal(before[name])]


def _about_equal(model: nn.Module, step: Callable[[], None]) -> list[str]:
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    step()
    moved = {name.split(".")[0] for name, p in model.named_parameters() if not torch.allclose(p, before[name])}
    return [name for name, _ in model.named_children() if name not in moved]


def _whole_state(model: nn.Module, step: Callable[[], None]) -> list[str]:
    before = {name: value.clone() for name, value in model.state_dict().items()}
    step()
    moved = {name.split(".")[0] for name, value in model.state_dict().items() if not value.equal(before[name])}
    return [name for name, _ in model.named_children() if name not in moved]


def _moved(model: nn.Module, step: Callable[[], None]) -> list[str]:
    still = left_alone(model, step)
    return [name for name, _ in model.named_children() if name not in still]


def _sgd(weight: nn.Parameter) -> None:
    if weight.grad is not None:
        weight.sub_(weight.grad, alpha=0.1)


def _by_a_millionth(weight: nn.Parameter) -> None:
    """What a step does where the learning rate has only begun to rise."""
    weight.mul_(1 + 1e-6)


def _moved_along(weight: nn.Parameter) -> None:
    """The same numbers in other places, so sum and norm stay."""
    weight.copy_(weight.flatten().roll(1).view_as(weight))


def _turned_over(weight: nn.Parameter) -> None:
    """A second step would undo it."""
    weight.neg_()


@dataclass
class _Step:
    """Forward, backward and a step that changes the parameters whose names `owns` accepts, by default as SGD does."""

    model: nn.Module
    owns: Callable[[str], bool]
    change: Callable[[nn.Parameter], None] = _sgd

    def __call__(self) -> None:
        self.model.zero_grad()
        x = torch.ones(2, 3)  # noqa: FL002 on the CPU
        sum((child(x).sum() for child in self.model.children()), x.new_zeros(())).backward()
        with torch.no_grad():
            for name, weight in self.model.named_parameters():
                if self.owns(name):
                    self.change(weight)

    def __repr__(self) -> str:
        return f"<a step that changes {', '.join(filter(self.owns, dict(self.model.named_parameters()))) or 'nothing'}>"


class _Parts(nn.ModuleDict):
    """A model, shown by the names of its parts."""

    def __repr__(self) -> str:
        return f"<a model of {', '.join(self)}>"


def _parts(names: Sequence[str], *norm: type[nn.BatchNorm1d]) -> nn.Module:
    """Parts whose weights are 1, 2, 3, ...: drawn ones would add up with other roundings in every run."""
    model = _Parts({name: nn.Sequential(nn.Linear(3, 2), *(n(2) for n in norm), nn.Linear(2, 1)) for name in names})
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.arange(1.0, weight.numel() + 1).view_as(weight))
    return model


def _parts_with_counts(names: Sequence[str]) -> nn.Module:
    """Each part has a BatchNorm, whose running mean changes in forward and is not a parameter."""
    return _parts(names, nn.BatchNorm1d)


def _step_cases(random: Random) -> Sequence[Case]:
    names = ["backbone", "rpn", "box_head"]
    owned: list[Callable[[str], bool]] = [
        lambda name: not name.startswith("rpn."),
        lambda name: True,
        lambda name: False,
        lambda name: name.startswith("box_head."),
        lambda name: not name.startswith("rpn.") and name != "backbone.0.bias",
        lambda name: name != "backbone.0.weight",  # the first of its part rests, the others move
        lambda name: name != "backbone.1.bias",  # the last
    ]
    some = random.sample([*names, "neck", "mask_head"], 4)
    kept = set(random.sample(some, 2))
    models = [*(_parts(names) for _ in owned), _parts(some)]
    steps = [_Step(model, own) for model, own in zip(models, [*owned, lambda n: n.split(".")[0] in kept], strict=True)]
    for make, change in (
        (_parts, _by_a_millionth),
        (_parts, _moved_along),
        (_parts, _turned_over),
        (_parts_with_counts, _sgd),
    ):
        models.append(make(names))
        steps.append(_Step(models[-1], lambda name: not name.startswith("rpn."), change))
    models.append(_parts(["head", "head_box", "rpn"]))  # the first name begins the second
    steps.append(_Step(models[-1], lambda name: name.startswith("head_box.")))
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


def _between_epochs(run: Callable[..., list[float]]) -> None:
    assert run(stop=4) == run()


def _first_loss(run: Callable[..., list[float]]) -> None:
    assert run(stop=5)[5] == run()[5]


def _returns(run: Callable[..., list[float]]) -> bool:
    return run(stop=5) == run()


def _with_itself(run: Callable[..., list[float]]) -> None:
    assert run(stop=6) == run(stop=6)


def _about(tolerance: float) -> Callable[[Callable[..., list[float]]], None]:
    def test(run: Callable[..., list[float]]) -> None:
        assert all(abs(mine - its) <= tolerance for mine, its in zip(run(stop=6), run(), strict=True))

    return test


def _about_relative(tolerance: float) -> Callable[[Callable[..., list[float]]], None]:
    def test(run: Callable[..., list[float]]) -> None:
        assert all(abs(mine - its) <= tolerance * its for mine, its in zip(run(stop=6), run(), strict=True))

    return test


def _no_jump(run: Callable[..., list[float]]) -> None:
    losses = run(stop=6)
    assert losses[6] <= losses[5]


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
                "this is what comes out when the parameters themselves are kept and not copies of them. An optimizer "
                "changes a parameter in place, so each is compared with itself, and every part seems to be left "
                "alone.",
                'the same of `state_dict()`: "returns reference to the state and not its copy!", PyTorch tutorial '
                "*Saving and Loading Models*, 2018",
                answers=(_keeps_references,),
            ),
            Mistake(
                "asked for gradients",
                "these are the parts without gradients. A part gets gradients whenever the loss depends on it; "
                "whether it moves depends on what the optimizer was given.",
                "looked for in the gradients: pytorch/pytorch issue 40983, 2020",
                answers=(_asks_for_gradients,),
            ),
            Mistake(
                "one parameter is enough",
                "here a part is named as soon as one of its parameters has stayed. Asked for are parts of which none "
                "has changed: a single bias may rest, because its gradient is 0 or because it is frozen.",
                "a checker that also looked at weights which are not trained: tensorflow/tensorflow issue 45582, 2020",
                answers=(_every_parameter,),
            ),
            Mistake(
                "one parameter of each part",
                "this is what comes out when one parameter of each part is looked at, the first or the last. It may "
                "rest while the others move.",
                answers=(_first_parameter, _last_parameter),
            ),
            Mistake(
                "one number for each part",
                "this is what comes out when one number is compared for each part, such as a sum, a mean or a norm. "
                "Parameters can change and leave it as it is; compare the parameters themselves.",
                answers=(_one_number, _norm),
            ),
            Mistake(
                "a name that begins another",
                "this is what `startswith` gives without the dot: a part seems to have moved where one did whose name "
                "begins with its name. Compare the name up to the first dot.",
                answers=(_begins_with,),
            ),
            Mistake(
                "about equal",
                "this is what comes out when a small difference is allowed, as with `allclose`. A step with a "
                "learning rate that has only begun to rise changes a weight by less; use `torch.equal`.",
                "rtol=1e-5 and atol=1e-8, the defaults of `torch.allclose`, documentation of 2.15, 2026",
                answers=(_about_equal,),
            ),
            Mistake(
                "buffers counted",
                "this is what a comparison of everything in `state_dict()` gives. It also holds buffers, such as the "
                "running mean of a BatchNorm, which changes in forward even where no parameter does.",
                "`momentum` of `torch.nn.BatchNorm2d` and its running estimates, documentation of 2.15, 2026",
                answers=(_whole_state,),
            ),
            Mistake(
                "the other way round",
                "these are the parts that moved. Asked for are those that did not.",
                answers=(_moved,),
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
                "this is how a test ends that stops only where an epoch ends. A run that begins its epoch again, "
                "with pictures that it has seen, is right there and nowhere else.",
                "checkpoints every 2000 iterations, epochs of 462: kdexd/virtex issue 18, 2020",
                answers=(_between_epochs,),
            ),
            Mistake(
                "the first loss alone",
                "this is how a test ends that compares the first loss after the stop. It is computed before the "
                "optimizer and the schedule have acted, so it is right even where both were forgotten.",
                "the optimizer is not saved, and the loss jumps later: matterport/Mask_RCNN issue 1726, 2019",
                answers=(_first_loss,),
            ),
            Mistake(
                "never fails",
                "this test lets every run pass. Either it compares a run with itself, as in `run(stop=6) == "
                "run(stop=6)`, where both sides have lost the same thing, or it never raises anything: a test that "
                "*returns* False has passed; write `assert`.",
                "pytest warns about tests that return something since version 7.2, 2022",
                answers=(_returns, _with_itself),
            ),
            Mistake(
                "a tolerance",
                "this is how a test ends that allows the losses to differ a little. The right run computes the same "
                "numbers in the same order, so its losses are equal to the last bit, and a small difference is a "
                "fault that is still small.",
                answers=(_about(0.1), _about(1e-4), _about_relative(0.1)),
            ),
            Mistake(
                "a jump",
                "this is how a test ends that looks for a jump of the loss at the stop. A loss rises and falls from "
                "batch to batch, and most of what is forgotten makes no jump. Compare with the run that never "
                "stopped.",
                "seen as a jump, once it is large: matterport/Mask_RCNN issue 1726, 2019",
                answers=(_no_jump,),
            ),
        ),
    ),
)
