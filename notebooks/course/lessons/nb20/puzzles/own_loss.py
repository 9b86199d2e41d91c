"""The loss that this rank calls backward() on: `total` is the sum of the losses of its objects, `objects` their number,
a tensor that may be 0. Under DDP every object of all ranks has to weigh the same, and the gradient has to be that of
one process, also where no rank has an object.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from torch import Tensor, distributed

from course.kit.learn.agree import near
from course.kit.learn.exercise import TODO, Case
from course.kit.learn.puzzle import wrong
from course.kit.rank_case import RankCase
from course.kit.rank_threads import call_on_ranks, is_apart
from course.kit.ranks import RanksFailed

hints = (
    "One process would divide the sum of all ranks by the number of all objects. How does a rank learn that number?",
    "DDP adds up the gradients of the ranks and divides by their number W. Each rank has to make up for that division.",
    "`everywhere = objects.clone()`, `distributed.all_reduce(everywhere)`, then "
    "`total * distributed.get_world_size() / everywhere.clamp(min=1)`.",
)


LIMIT = 3.0  # seconds after which ranks that wait for each other end an answer


@dataclass(frozen=True)
class Trained:
    """The gradient of one weight after DDP, the same on all ranks. `error`: how the ranks failed, in a word."""

    gradient: float
    error: str = ""
    words: str = ""

    def __repr__(self) -> str:
        return f"an error ({self.words})" if self.error else f"the gradient {self.gradient:.4f}"


class _Ranks(RankCase):
    """args: for each rank the losses of its objects, per unit of a weight."""

    def on_ranks(self, function: Callable[..., Any]) -> Any:
        results = call_on_ranks(len(self.args), self._on_rank, function, limit=LIMIT)
        return TODO if TODO in results else Trained(sum(results) / len(results))

    def failed(self, failed: RanksFailed) -> Any:
        words = str(failed).splitlines()[0]
        return Trained(0.0, "apart" if is_apart(failed) else words.split("raised ")[-1].split(":")[0], words)

    def _on_rank(self, function: Callable[..., Any]) -> Any:
        losses = self.args[distributed.get_rank()]
        weight = torch.ones((), dtype=torch.float64, device="cuda", requires_grad=True)
        objects = torch.tensor(len(losses), device="cuda")
        loss = function(weight * sum(losses), objects)
        if loss is TODO:
            return TODO
        (gradient,) = torch.autograd.grad(loss, weight)
        return gradient.item()

    def show(self, name: str) -> str:
        ranks = len(self.args)
        words = " and ".join(f"{len(losses)} with a total of {sum(losses):g}" for losses in self.args)
        return f"{name}, on {ranks} rank{'s' * (ranks > 1)}, of objects {words},"


def own_loss(total: Tensor, objects: Tensor) -> Tensor:
    everywhere = objects.clone()
    distributed.all_reduce(everywhere)
    return total * distributed.get_world_size() / everywhere.clamp(min=1)


def _near(given: Any, expected: Trained) -> bool:
    return given.error == expected.error and near(given.gradient, expected.gradient, 1e-5)


agree = _near


def cases(random: Random) -> Sequence[Case]:
    def drawn(count: int) -> list[float]:
        return [float(random.randint(1, 9)) for _ in range(count)]

    fixed = [([2.0, 4.0, 3.0], [5.0]), ([6.0, 2.0], []), ([], []), ([7.0, 1.0],)]
    fixed.append(([4.0], []))  # fewer objects than ranks
    more = [(drawn(random.randint(2, 5)), drawn(random.randint(6, 9))), ([], drawn(3))]
    return [_Ranks(ranks) for ranks in fixed + more]


def _apart(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return any(trained.error == "apart" for trained in given)


def _no_gradient(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return all("does not require grad" in trained.words for trained in given)


@wrong
def its_own_mean(total: Tensor, objects: Tensor) -> Tensor:
    """this is what comes out when each rank divides by its own objects. DDP then takes a mean of means, in which an
    object weighs more on a rank that has fewer of them.

    Source: dividing on each device: open-mmlab/mmdetection issue 2933, 2020
    """
    return total / objects.clamp(min=1)


@wrong
def the_number_of_ranks_forgotten(total: Tensor, objects: Tensor) -> Tensor:
    """this gradient is as many times too small as there are ranks. DDP divides the sum of the gradients by the number
    of ranks, and the count of all ranks has divided them already.
    """
    everywhere = objects.clone()
    distributed.all_reduce(everywhere)
    return total / everywhere.clamp(min=1)


@wrong
def clamped_too_early(total: Tensor, objects: Tensor) -> Tensor:
    """this is what comes out when each rank sends at least 1. A rank without objects is then counted as one object. The
    count of all ranks must not be 0; that of one rank may.
    """
    everywhere = objects.clamp(min=1)
    distributed.all_reduce(everywhere)
    return total * distributed.get_world_size() / everywhere


@wrong(recognise=_apart)
def a_rank_that_does_not_come(total: Tensor, objects: Tensor) -> Tensor:
    """the ranks have parted: some called a collective to which others did not come. A rank without objects has to call
    `all_reduce` like all others.
    """
    return total * 0 if objects == 0 else own_loss(total, objects)


@wrong
def not_clamped(total: Tensor, objects: Tensor) -> Tensor:
    """this is what a division by 0 gives, where no rank has an object. NaN in one gradient is NaN in all weights after
    the step.
    """
    everywhere = objects.clone()
    distributed.all_reduce(everywhere)
    return total * distributed.get_world_size() / everywhere


@wrong
def the_mean_is_clamped(total: Tensor, objects: Tensor) -> Tensor:
    """this divides by the mean of the counts, which is right, and raises that mean to 1. With fewer objects than ranks
    the gradient is then too small: clamp the count of all.

    Source: `torch.clamp(num_boxes / get_world_size(), min=1)`, facebookresearch/detr, `models/detr.py`, 2020
    """
    everywhere = objects.clone()
    distributed.all_reduce(everywhere)
    return total / (everywhere / distributed.get_world_size()).clamp(min=1)


@wrong
def divided_by_the_ranks_too(total: Tensor, objects: Tensor) -> Tensor:
    """here the loss is divided by the number of ranks, which DDP does a second time. Multiply by it."""
    everywhere = objects.clone()
    distributed.all_reduce(everywhere)
    return total / distributed.get_world_size() / everywhere.clamp(min=1)


@wrong
def twice(total: Tensor, objects: Tensor) -> Tensor:
    """this is what comes out when the loss is multiplied by 2. The same program runs on one rank or on eight:
    `distributed.get_world_size()` is their number.
    """
    everywhere = objects.clone()
    distributed.all_reduce(everywhere)
    return total * 2 / everywhere.clamp(min=1)


@wrong(recognise=_no_gradient)
def a_number(total: Tensor, objects: Tensor) -> Any:
    """what you return has no gradient. backward() needs `total` itself, as a tensor of the graph, and not its value."""
    return torch.as_tensor(its_own_mean(total.detach(), objects))
