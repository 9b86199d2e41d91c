"""One training step on this rank, without DistributedDataParallel: `x` and `y` are the rank's own rows, the loss is
`F.mse_loss(net(x), y)`, and every rank has as many rows. After it all ranks hold the weights that one process would
have after a step on all rows.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import parameters_to_vector
from torch.optim import SGD, Adam, Optimizer

from course.kit.learn.exercise import TODO, Case
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb07.cases import OnRanks

hints = (
    "The gradient of a mean over all rows is the mean of the ranks' gradients. When are the gradients there, "
    "and when are they used?",
    "`distributed.all_reduce(tensor)` puts the sum over all ranks in the place of the tensor. Call it for "
    "`parameter.grad` of each parameter, between `backward()` and `step()`.",
    "A sum over ranks becomes a mean by `parameter.grad /= distributed.get_world_size()`.",
)


LEAF = re.compile("leaf Variable that requires grad")  # autograd refuses to change a parameter in place
WRAPPED = "wrapped in DistributedDataParallel"


@dataclass(frozen=True)
class Trained:
    """What two ranks hold after two steps. `seen` is not compared: what else there is to tell mistakes apart."""

    weights: list[list[float]]
    seen: tuple[Any, ...] = field(default=(), compare=False, repr=False)
    error: str = ""

    def __repr__(self) -> str:
        if self.error:
            return f"an error: {self.error}"
        return " and ".join(
            f"the weights [{', '.join(f'{weight:.3f}' for weight in own)}] on rank {rank}"
            for rank, own in enumerate(self.weights)
        )


class _Steps(OnRanks):
    """args: the kind of optimizer, and for each rank its rows, a list of (two pixels, target)."""

    @property
    def world_size(self) -> int:
        return len(self.args[1])

    def on_rank(self, function: Callable[..., Any]) -> Any:
        kind, parts = self.args
        rows = torch.tensor(parts[distributed.get_rank()], dtype=torch.float64).cuda()  # noqa: FL001 the rank's own
        net = nn.Linear(2, 1, dtype=torch.float64).cuda()  # noqa: FL001 the rank's own
        for parameter in net.parameters():
            nn.init.constant_(parameter, 0.5)
            parameter.grad = torch.full_like(parameter, 2.0 + distributed.get_rank())  # of a step before
        optimizer: Optimizer = {"SGD": SGD, "Adam": Adam}[kind](net.parameters(), lr=0.1)
        sent: list[bool] = []  # whether what is handed to all_reduce is a result that backward could go through
        original = distributed.all_reduce

        def note(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
            sent.append(tensor.grad_fn is not None)
            return original(tensor, *args, **kwargs)

        def refuse(*args: Any, **kwargs: Any) -> None:
            raise RuntimeError(WRAPPED)

        distributed.all_reduce = note
        DistributedDataParallel.__init__ = refuse  # type: ignore[method-assign]
        for _ in range(2):
            try:
                if function(net, optimizer, rows[:, :2], rows[:, 2:]) is TODO:
                    return TODO
            except RuntimeError as error:
                if not (LEAF.search(str(error)) or str(error) == WRAPPED):
                    raise
                return str(error)
        gradients = [None if parameter.grad is None else parameter.grad.tolist() for parameter in net.parameters()]
        return parameters_to_vector(net.parameters()).tolist(), gradients, any(sent)

    def joined(self, given: list[Any]) -> Trained:
        if error := next((one for one in given if isinstance(one, str)), ""):
            return Trained([], error=error)
        weights, gradients, reduced = zip(*given, strict=True)
        return Trained(list(weights), (gradients, any(reduced)))

    def show(self, name: str) -> str:
        kind, parts = self.args
        where = "each of two ranks" if len(parts) == 2 else "the only rank"
        return f"{name}(net, {kind.lower()}, x, y), twice, with {len(parts[0])} rows on {where},"


def train_step(net: Any, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    optimizer.zero_grad()
    F.mse_loss(net(x), y).backward()
    for parameter in net.parameters():
        distributed.all_reduce(parameter.grad)
        parameter.grad /= distributed.get_world_size()
    optimizer.step()


def _refused_by_autograd(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return any(LEAF.search(trained.error) for trained in given)


def _wrapped(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return any(trained.error == WRAPPED for trained in given)


def _through_the_loss(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return all(trained.seen[1] for trained in given)


def _on_two(cases: Sequence[Case], given: Sequence[Trained]) -> Sequence[Trained]:
    return [trained for case, trained in zip(cases, given, strict=True) if case.args[1][1:]]


def _equal_gradients_and_other_weights(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    two = _on_two(cases, given)
    gradients = [trained.seen[0] for trained in two]
    return all(None not in one and one == other for one, other in gradients) and all(
        trained.weights[0] != trained.weights[1] for trained in two
    )


def cases(random: Random) -> Sequence[Case]:
    def rows(count: int) -> list[list[list[float]]]:
        return [[[float(random.randint(-3, 3)) for _ in range(3)] for _ in range(count)] for _ in range(2)]

    fixed = [[[1.0, 0.0, 2.0], [1.0, 1.0, 0.0]], [[0.0, 1.0, 1.0], [1.0, -1.0, 3.0]]]
    alone = rows(2)[:1]  # one rank, whose gradient is that of all rows already
    drawn = rows(random.randint(2, 5))
    trained = (("SGD", fixed), ("Adam", rows(3)), ("SGD", drawn), ("SGD", alone))
    return [_Steps((kind, parts)) for kind, parts in trained]


def _same_weights(given: Any, expected: Trained) -> bool:
    pairs = zip(chain(*given.weights), chain(*expected.weights), strict=True)
    return all(abs(mine - right) < 1e-6 for mine, right in pairs)


agree = _same_weights


@wrong(recognise=_wrapped)
def wrapped_in_ddp(net: Any, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    """you wrapped the net in DistributedDataParallel, which averages the gradients itself. Do it without."""
    ddp = DistributedDataParallel(net)
    nothing_exchanged(ddp, optimizer, x, y)


@wrong(recognise=_refused_by_autograd)
def weights_averaged_under_autograd(net: Any, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    """autograd refuses to change a parameter itself in place outside of `torch.no_grad()`. Average the gradients,
    before the step: `parameter.grad` is not a leaf of the graph, and needs no `no_grad`.
    """
    nothing_exchanged(net, optimizer, x, y)
    for parameter in net.parameters():
        distributed.all_reduce(parameter)
        parameter /= distributed.get_world_size()


@wrong
def zero_grad_forgotten(net: Any, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    """this is what a step gives that begins with the gradients of the step before. backward() adds to them, so
    `optimizer.zero_grad()` comes before it.
    """
    F.mse_loss(net(x), y).backward()
    for parameter in net.parameters():
        distributed.all_reduce(parameter.grad)
        parameter.grad /= distributed.get_world_size()
    optimizer.step()


@also(zero_grad_forgotten)
def zeroed_at_the_end(net: Any, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    zero_grad_forgotten(net, optimizer, x, y)
    optimizer.zero_grad()


@wrong(recognise=_through_the_loss)
def all_reduce_of_the_loss(net: Any, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    """you called all_reduce on a result of the net, and not on gradients. The collective adds up numbers and is not
    part of the graph, so each rank's gradient is still that of its own rows.

    Source: NVIDIA/apex issue 664, 2019
    """
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), y)
    distributed.all_reduce(loss)
    loss.backward()
    optimizer.step()


@also(all_reduce_of_the_loss)
def loss_averaged(net: Any, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), y)
    distributed.all_reduce(loss)
    (loss / distributed.get_world_size()).backward()
    optimizer.step()


@wrong(recognise=_equal_gradients_and_other_weights)
def averaged_after_the_step(net: Any, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    """this is what comes out when gradients are averaged after `optimizer.step()`. The step has used each rank's own by
    then, so the weights have gone apart; the next zero_grad throws the averages away.

    Source: LambdaLabsML/distributed-training-guide, 2025, chapter 2, has step() synchronise the gradients
    """
    nothing_exchanged(net, optimizer, x, y)
    for parameter in net.parameters():
        distributed.all_reduce(parameter.grad)
        parameter.grad /= distributed.get_world_size()


@wrong
def not_divided(net: Any, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    """this is what a step gives that adds the gradients up and does not divide by the number of ranks. It is as many
    times too long as there are ranks.

    Source: asked about in srush/LLM-Training-Puzzles issue 9, 2024
    """
    optimizer.zero_grad()
    F.mse_loss(net(x), y).backward()
    for parameter in net.parameters():
        distributed.all_reduce(parameter.grad)
    optimizer.step()


@wrong
def divided_by_two(net: Any, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    """this is what a step gives that divides by 2. On two ranks it is right, and the same program runs on one rank, or
    on eight: `distributed.get_world_size()` is their number.
    """
    optimizer.zero_grad()
    F.mse_loss(net(x), y).backward()
    for parameter in net.parameters():
        distributed.all_reduce(parameter.grad)
        parameter.grad /= 2
    optimizer.step()


@wrong
def weights_averaged(net: Any, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    """this is what comes out when each rank takes a step of its own, and the weights are averaged after it. With plain
    SGD that is the same; Adam has divided each rank's gradient by its own size before, and the mean of that is
    something else.

    Source: a method of its own, local SGD with a period of one step: pytorch/pytorch pull request 74737, 2022
    """
    nothing_exchanged(net, optimizer, x, y)
    for parameter in net.parameters():
        distributed.all_reduce(parameter.data)
        parameter.data /= distributed.get_world_size()


@wrong
def the_weight_alone(net: Any, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    """this is what comes out when the gradient of `net.weight` is averaged and that of the bias is not. A net has more
    parameters than one: go through `net.parameters()`.
    """
    optimizer.zero_grad()
    F.mse_loss(net(x), y).backward()
    distributed.all_reduce(net.weight.grad)
    net.weight.grad /= distributed.get_world_size()
    optimizer.step()


@wrong
def nothing_exchanged(net: Any, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    """this is what a step gives that exchanges nothing: each rank uses the gradient of its own rows, so two models are
    in training.

    Source: what deepmodeling/deepmd-kit pull request 1104, 2021, repairs
    """
    optimizer.zero_grad()
    F.mse_loss(net(x), y).backward()
    optimizer.step()
