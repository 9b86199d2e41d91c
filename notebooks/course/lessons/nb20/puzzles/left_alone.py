"""`model.named_children()` are the parts of a model. Call `step()` once and return the names of those parts, in their
order, of which it has changed no parameter, as a list.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import torch
from torch import nn

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong

hints = (
    "Compare every parameter with what it was before. What must you keep of it, so that it is still there?",
    "`weight.detach().clone()` is a copy. `model.named_parameters()` has names such as 'rpn.conv.weight'.",
    "Collect `name.split('.')[0]` of all parameters that are not `equal` to their copies: these parts moved.",
)


def left_alone(model: nn.Module, step: Callable[[], None]) -> list[str]:
    """Names of the children of `model` of which one call of `step` changes no parameter, in their order."""
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    step()
    moved = {name.split(".")[0] for name, weight in model.named_parameters() if not weight.equal(before[name])}
    return [name for name, _ in model.named_children() if name not in moved]


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


def cases(random: Random) -> Sequence[Case]:
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


@wrong
def kept_the_tensors_themselves(model: nn.Module, step: Callable[[], None]) -> list[str]:
    """this is what comes out when the parameters themselves are kept and not copies of them. An optimizer changes a
    parameter in place, so each is compared with itself, and every part seems to be left alone.

    Source: the same of `state_dict()`: "returns reference to the state and not its copy!", PyTorch tutorial *Saving and
    Loading Models*, 2018
    """
    before = dict(model.named_parameters())
    step()
    moved = {name.split(".")[0] for name, weight in model.named_parameters() if not weight.equal(before[name])}
    return [name for name, _ in model.named_children() if name not in moved]


@wrong
def asked_for_gradients(model: nn.Module, step: Callable[[], None]) -> list[str]:
    """these are the parts without gradients. A part gets gradients whenever the loss depends on it; whether it moves
    depends on what the optimizer was given.

    Source: looked for in the gradients: pytorch/pytorch issue 40983, 2020
    """
    step()
    return [name for name, child in model.named_children() if all(p.grad is None for p in child.parameters())]


@wrong
def one_parameter_is_enough(model: nn.Module, step: Callable[[], None]) -> list[str]:
    """here a part is named as soon as one of its parameters has stayed. Asked for are parts of which none has changed:
    a single bias may rest, because its gradient is 0 or because it is frozen.

    Source: a checker that also looked at weights which are not trained: tensorflow/tensorflow issue 45582, 2020
    """
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    step()
    still = {name.split(".")[0] for name, weight in model.named_parameters() if weight.equal(before[name])}
    return [name for name, _ in model.named_children() if name in still]


@wrong
def one_parameter_of_each_part(model: nn.Module, step: Callable[[], None]) -> list[str]:
    """this is what comes out when one parameter of each part is looked at, the first or the last. It may rest while the
    others move.
    """
    before = {name: next(child.parameters()).detach().clone() for name, child in model.named_children()}
    step()
    return [name for name, child in model.named_children() if next(child.parameters()).equal(before[name])]


@also(one_parameter_of_each_part)
def last_parameter(model: nn.Module, step: Callable[[], None]) -> list[str]:
    before = {name: list(child.parameters())[-1].detach().clone() for name, child in model.named_children()}
    step()
    return [name for name, child in model.named_children() if list(child.parameters())[-1].equal(before[name])]


@wrong
def one_number_for_each_part(model: nn.Module, step: Callable[[], None]) -> list[str]:
    """this is what comes out when one number is compared for each part, such as a sum, a mean or a norm. Parameters can
    change and leave it as it is; compare the parameters themselves.
    """
    before = {name: sum(p.sum().item() for p in child.parameters()) for name, child in model.named_children()}
    step()
    after = {name: sum(p.sum().item() for p in child.parameters()) for name, child in model.named_children()}
    return [name for name in after if after[name] == before[name]]


@also(one_number_for_each_part)
def norm(model: nn.Module, step: Callable[[], None]) -> list[str]:
    before = {name: [p.norm().item() for p in child.parameters()] for name, child in model.named_children()}
    step()
    after = {name: [p.norm().item() for p in child.parameters()] for name, child in model.named_children()}
    return [name for name in after if after[name] == before[name]]


@wrong
def a_name_that_begins_another(model: nn.Module, step: Callable[[], None]) -> list[str]:
    """this is what `startswith` gives without the dot: a part seems to have moved where one did whose name begins with
    its name. Compare the name up to the first dot.
    """
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    step()
    moved = [name for name, weight in model.named_parameters() if not weight.equal(before[name])]
    return [part for part, _ in model.named_children() if not any(name.startswith(part) for name in moved)]


@wrong
def about_equal(model: nn.Module, step: Callable[[], None]) -> list[str]:
    """this is what comes out when a small difference is allowed, as with `allclose`. A step with a learning rate that
    has only begun to rise changes a weight by less; use `torch.equal`.

    Source: rtol=1e-5 and atol=1e-8, the defaults of `torch.allclose`, documentation of 2.15, 2026
    """
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    step()
    moved = {name.split(".")[0] for name, p in model.named_parameters() if not torch.allclose(p, before[name])}
    return [name for name, _ in model.named_children() if name not in moved]


@wrong
def buffers_counted(model: nn.Module, step: Callable[[], None]) -> list[str]:
    """this is what a comparison of everything in `state_dict()` gives. It also holds buffers, such as the running mean
    of a BatchNorm, which changes in forward even where no parameter does.

    Source: `momentum` of `torch.nn.BatchNorm2d` and its running estimates, documentation of 2.15, 2026
    """
    before = {name: value.clone() for name, value in model.state_dict().items()}
    step()
    moved = {name.split(".")[0] for name, value in model.state_dict().items() if not value.equal(before[name])}
    return [name for name, _ in model.named_children() if name not in moved]


@wrong
def the_other_way_round(model: nn.Module, step: Callable[[], None]) -> list[str]:
    """these are the parts that moved. Asked for are those that did not."""
    still = left_alone(model, step)
    return [name for name, _ in model.named_children() if name not in still]
