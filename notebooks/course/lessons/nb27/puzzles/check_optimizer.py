"""A test for `optimizer`, which shall train `model`: pass where every parameter of the model is in it exactly once and
it holds no other tensor. Otherwise raise an error, and do not take a step.
"""

import copy
import warnings
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import torch
from torch import nn

from course.kit.learn.exercise import Case, Trial
from course.kit.learn.puzzle import also, wrong

hints = (
    "An optimizer keeps its tensors in `optimizer.param_groups`, a list: each group is a dict with a list `params`.",
    "Two tensors of equal numbers are not the same parameter, and `==` compares numbers. `id(parameter)` tells objects "
    "apart.",
    "Collect `id(p)` of all groups in one list, sort it, and compare it with the sorted ids of `model.parameters()`.",
)


def check_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    held = [id(p) for group in optimizer.param_groups for p in group["params"]]
    assert sorted(held) == sorted(id(p) for p in model.parameters())


class Named(Trial):
    """A model with its optimizer, made anew for each call. args: what it is called, what makes it, how many units."""

    def call(self, function: Callable[..., object]) -> object:
        return Trial(self.args[1](self.args[2])).call(function)

    def show(self, name: str) -> str:
        return f"{name}(<{self.args[0]}>)"


def _net(units: int) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, units), nn.Linear(units, units), nn.Linear(units, 2))


def _sgd(groups: list[list[nn.Parameter]]) -> torch.optim.SGD:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a parameter that is in a group twice
        return torch.optim.SGD([{"params": group} for group in groups], lr=0.1)


def _groups(units: int, *parts: slice) -> tuple[nn.Module, torch.optim.Optimizer]:
    net = _net(units)
    return net, _sgd([list(net[part].parameters()) for part in parts])


def _tied(units: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    net = _net(units)
    net[1].weight = nn.Parameter(torch.eye(units))
    net.append(nn.Linear(units, units))
    net[3].weight = net[1].weight
    return net, _sgd([list(net.parameters())])


def _counted_first(units: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    net = _net(units)
    some = filter(lambda parameter: True, net[1:].parameters())
    sum(parameter.numel() for parameter in some)
    groups: list[dict[str, Any]] = [{"params": some}, {"params": net[0].parameters()}]
    return net, torch.optim.SGD(groups, lr=0.1)


def _loaded_later(units: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    net = _net(units)
    optimizer = _sgd([list(net.parameters())])
    net.load_state_dict({name: value.clone() for name, value in net.state_dict().items()}, assign=True)
    return net, optimizer


def _of_a_copy(units: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    net = _net(units)
    return net, _sgd([list(copy.deepcopy(net).parameters())])


def _one_replaced(units: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    """The last layer was replaced after the optimizer was made, by one of the same shape."""
    net = _net(units)
    optimizer = _sgd([list(net[:2].parameters()), list(net[2].parameters())])
    net[2] = nn.Linear(units, 2)
    return net, optimizer


def _with_an_old_head(units: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    net = _net(units)
    return net, _sgd([list(net.parameters()), list(nn.Linear(units, 2).parameters())])


def _twice(units: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    net = _net(units)
    all_six = list(net.parameters())
    return net, _sgd([[*all_six, all_six[2]]])


def _twice_for_another(units: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    """As many entries as there are parameters: one is there twice, one is not."""
    net = _net(units)
    all_six = list(net.parameters())
    return net, _sgd([[all_six[2], *all_six[:3], *all_six[4:]]])


def cases(random: Random) -> Sequence[Case]:
    """Three right optimizers and nine wrong ones, of which one is drawn."""
    forgotten, units = random.randrange(3), random.randint(4, 99)
    rest = [slice(k, k + 1) for k in range(3) if k != forgotten]
    pairs: dict[str, Callable[[int], tuple[nn.Module, torch.optim.Optimizer]]] = {
        "a right one with one group": lambda units: _groups(units, slice(0, 3)),
        "a right one with two groups": lambda units: _groups(units, slice(1, 3), slice(0, 1)),
        "a right one, two layers share a weight": _tied,
        "a filter was counted first": _counted_first,
        f"layer {forgotten} forgotten": lambda units: _groups(units, *rest),
        "loaded with assign=True afterwards": _loaded_later,
        "made for a copy of the model": _of_a_copy,
        "the last layer replaced afterwards": _one_replaced,
        "an old head in a second group": _with_an_old_head,
        "a weight in one group twice": _twice,
        "a weight twice, a different one missing": _twice_for_another,
    }
    return [Named((f"{words}, {units} units", make, units)) for words, make in pairs.items()]


def _held(optimizer: torch.optim.Optimizer) -> list[nn.Parameter]:
    return [p for group in optimizer.param_groups for p in group["params"]]


@wrong
def counts_only(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """this is how a test ends that compares how many tensors or numbers there are, or their shapes. An optimizer can
    hold as many as the model has, and train those of a copy.
    """
    assert len(_held(optimizer)) == len(list(model.parameters()))


@also(counts_only)
def sums_only(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    assert sum(p.numel() for p in _held(optimizer)) == sum(p.numel() for p in model.parameters())


@wrong
def no_empty_group(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """this is how a test ends that looks for an empty group alone. Layers are forgotten without one, too."""
    assert all(group["params"] for group in optimizer.param_groups)


@wrong
def equal_numbers(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """this is how a test ends that compares the numbers of the tensors. After `assign=True`, and in a copy, the numbers
    are equal and the parameters are not the same objects.
    """
    held = _held(optimizer)
    assert len(held) == len(list(model.parameters()))
    assert all(any(p.shape == q.shape and p.equal(q) for q in held) for p in model.parameters())
    assert all(any(p.shape == q.shape and p.equal(q) for q in model.parameters()) for p in held)


@wrong
def one_direction(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """this is how a test ends that asks whether each parameter of the model is in the optimizer. It may hold more: the
    tensors of an old head, or a weight twice.
    """
    assert {id(p) for p in model.parameters()} <= {id(p) for p in _held(optimizer)}


@wrong
def the_other_direction(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """this is how a test ends that asks whether each tensor of the optimizer belongs to the model. A forgotten layer
    passes it.
    """
    assert {id(p) for p in _held(optimizer)} <= {id(p) for p in model.parameters()}


@wrong
def sets(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """this is how a test ends that compares sets. A set holds an object once, however often it was in the list, so a
    weight that is there twice passes.

    Source: pytorch/pytorch issue 40967, 2020, on what such a weight does
    """
    assert {id(p) for p in _held(optimizer)} == {id(p) for p in model.parameters()}


@wrong
def the_first_group(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """this is how a test ends that looks into the first group alone. A right optimizer with two groups fails it."""
    held = [id(p) for p in optimizer.param_groups[0]["params"]]
    assert sorted(held) == sorted(id(p) for p in model.parameters())


@wrong
def tensors_in_a_list(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """this is how a test ends that raises for every optimizer, the right ones too. `parameter in list` does so: it
    compares numbers, tensor by tensor, and raises where their shapes differ.
    """
    raise AssertionError
