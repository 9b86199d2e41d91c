"""Train `model` by hand on cuda:0 and cuda:1 for `steps` steps of SGD, learning rate 0.1, and return the loss of each
step, a list of numbers. `model` may have gradients from before. `inputs` has a list of arguments for each device, on
the CPU; `model` returns the sum of its losses and their number, and the loss of a step is the mean over both
devices.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from course.kit.learn.exercise import TODO, Case, Fresh, show
from course.kit.learn.puzzle import also, wrong

hints = (
    "Five calls: `replicate`, `parallel_apply`, `gather`, `backward`, `optimizer.step()`. Which of them may "
    "stand before the loop?",
    "`parallel_apply(replicas, inputs, devices=[0, 1])`, because the model calls a bare `.cuda()`; "
    "`sums, counts = gather(outputs, 0)`.",
    "The loss is `sums.sum() / counts.sum()`, as in notebook 03; `optimizer.zero_grad()` before `backward`.",
)


class _Boxes(nn.Module):
    """One layer that guesses a box for a picture. Returns the sum of distances to the true boxes, and their number.

    `ran` notes how many boxes it was called with, and where; it belongs to the class, so all copies share it.
    """

    ran: ClassVar[set[tuple[int, str]]] = set()

    def __init__(self) -> None:
        super().__init__()
        self.box = nn.Linear(6, 4)

    def __repr__(self) -> str:
        return "<a layer that guesses a box>"

    def forward(self, image: Tensor, boxes: Tensor) -> tuple[Tensor, Tensor]:
        image, boxes = image.cuda(), boxes.cuda()  # noqa: FL001 the current GPU
        distances = (self.box(image) - boxes).abs().sum(1)
        self.ran.add((len(boxes), str(distances.device)))
        return distances.sum().view(1), torch.ones_like(distances).sum().view(1)


def train(model: nn.Module, inputs: Sequence[Sequence[Tensor]], steps: int) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        replicas = nn.parallel.replicate(model, [0, 1])
        outputs = nn.parallel.parallel_apply(replicas, inputs, devices=[0, 1])
        sums, counts = nn.parallel.gather(outputs, 0)
        loss = sums.sum() / counts.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()  # read once at the end: each step would wait for it


Parts = tuple[Tensor, Tensor]  # gathered sums and counts


def _mean(gathered: Parts) -> Tensor:
    sums, counts = gathered
    return sums.sum() / counts.sum()


def _loop(
    model: nn.Module,
    inputs: Sequence[Sequence[Tensor]],
    steps: int,
    replicas: Callable[[nn.Module], Any] = lambda model: nn.parallel.replicate(model, [0, 1]),
    devices: list[int] | None = [0, 1],  # noqa: B006 nobody changes it
    loss: Callable[[Parts], Tensor] = _mean,
    backward: Callable[[Parts], Tensor] | None = None,
    clears: bool = True,
    clears_after: bool = False,
    rate: float = 0.1,
) -> list[float]:
    """The loop with one thing done differently."""
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    losses = []
    for _ in range(steps):
        outputs = nn.parallel.parallel_apply(replicas(model), inputs, devices=devices)
        gathered = nn.parallel.gather(outputs, 0)
        if clears:
            optimizer.zero_grad()
        (backward or loss)(gathered).backward()
        optimizer.step()
        if clears_after:
            optimizer.zero_grad()
        losses.append(loss(gathered).detach())
    return torch.stack(losses).tolist()


def _with_a_copy(model: nn.Module) -> list[nn.Module]:
    return [model, copy.deepcopy(model).to("cuda:1")]  # noqa: FL004 the mistake itself


def _without_graph(model: nn.Module) -> Any:
    with torch.no_grad():
        return nn.parallel.replicate(model, [0, 1])


@dataclass(frozen=True)
class _Trained:
    """What a training has left. losses: as they were returned; weights: of the model; ran: where, on how many boxes."""

    losses: Any
    before: Tensor
    weights: Tensor
    ran: frozenset[tuple[int, str]]

    def __repr__(self) -> str:
        places = " and ".join(sorted({place for _, place in self.ran})) or "no GPU"
        moved = (self.weights - self.before).norm().item()
        return f"losses {show(self.losses)} on {places}, and changed the weights by {moved:.4f}"


class _Training(Fresh):
    """Each call trains a model of its own, which has the gradients of an earlier step."""

    def call(self, function: Callable[..., Any]) -> Any:
        model, inputs, steps = copy.deepcopy(self.args)
        for weight in model.parameters():
            weight.grad = torch.ones_like(weight)
        before = nn.utils.parameters_to_vector(model.parameters()).detach()
        model.ran.clear()
        losses = function(model, inputs, steps)
        weights = nn.utils.parameters_to_vector(model.parameters()).detach()
        return losses if losses is TODO else _Trained(losses, before, weights, frozenset(model.ran))

    def show(self, name: str) -> str:
        model, inputs, steps = self.args
        return f"{name}({model}, <lists with {' and '.join(str(len(boxes)) for _, boxes in inputs)} boxes>, {steps})"


def cases(random: Random) -> Sequence[Case]:
    cases = []
    for steps in (1, 2, *(random.randint(2, 4) for _ in range(3))):
        torch.manual_seed(random.randrange(2**31))
        inputs = [[torch.rand(1, 6), torch.rand(boxes, 4)] for boxes in random.sample(range(1, 9), 2)]
        cases.append(_Training((_Boxes().cuda(), inputs, steps)))  # noqa: FL001 any GPU
    return cases


def _same_training(given: _Trained, expected: _Trained) -> bool:
    """Lists of numbers, or of tensors that may have a graph; the same weights, and each list of inputs on its GPU."""
    losses = [loss.item() if isinstance(loss, Tensor) else float(loss) for loss in given.losses]
    return (
        np.allclose(losses, expected.losses, rtol=1e-4, atol=1e-4)
        and torch.allclose(given.weights, expected.weights, rtol=1e-4, atol=1e-4)
        and given.ran == expected.ran
    )


agree = _same_training


@wrong
def replicas_made_once(model: nn.Module, inputs: Sequence[Sequence[Tensor]], steps: int) -> list[float]:
    """this is what comes of a replica that is made before the loop. After the first step the one on cuda:1 has old
    weights. Autograd refuses that where it notices it, and trains on without a word where the model itself is used on
    cuda:0.

    Source: EPFL-LCN/pub-illing2021-neurips issue 3, 2023
    """
    replicas = nn.parallel.replicate(model, [0, 1])
    return _loop(model, inputs, steps, replicas=lambda model: replicas)


@also(replicas_made_once)
def second_replica_once(model: nn.Module, inputs: Sequence[Sequence[Tensor]], steps: int) -> list[float]:
    """The model itself on cuda:0, and a replica that grows old beside it: nothing raises."""
    replicas = [model, nn.parallel.replicate(model, [0, 1])[1]]
    return _loop(model, inputs, steps, replicas=lambda model: replicas)


@wrong
def no_devices(model, inputs, steps):
    """this is what `parallel_apply` does without `devices`: all its threads work on the caller's GPU.

    Source: what pytorch/pytorch pull request 1880, 2017, gave `parallel_apply` its `devices` for
    """
    return _loop(model, inputs, steps, devices=None)


@wrong
def mean_of_means(model, inputs, steps):
    """this is what comes of the mean of the two means. The GPUs have different numbers of boxes: add the sums, add the
    counts, divide once.

    Source: met with gradient accumulation in huggingface/transformers issue 34242, 2024; see notebook 03
    """
    return _loop(model, inputs, steps, loss=lambda parts: (parts[0] / parts[1]).mean())


@also(mean_of_means)
def _(model, inputs, steps):
    return _loop(
        model,
        inputs,
        steps,
        loss=lambda parts: (parts[0] / parts[1]).mean(),
        backward=lambda parts: (parts[0] / parts[1]).sum(),
    )


@wrong
def not_divided(model, inputs, steps):
    """this is what comes out when the sum of the losses is not divided by the number of all boxes: it is not divided at
    all, or by the number of images.

    Source: huggingface/transformers issue 34242, 2024, on what to divide a gathered loss by
    """
    return _loop(model, inputs, steps, loss=lambda parts: parts[0].sum())


@also(not_divided)
def _(model, inputs, steps):
    return _loop(model, inputs, steps, backward=lambda parts: parts[0].sum())


@also(not_divided)
def _(model, inputs, steps):
    return _loop(model, inputs, steps, loss=lambda parts: parts[0].sum() / len(parts[0]))


@wrong
def a_copy_is_not_a_replica(model: nn.Module, inputs: Sequence[Sequence[Tensor]], steps: int) -> list[float]:
    """this is what comes of a `deepcopy` of the model. It has weights of its own: its gradients do not arrive in the
    model, and training it leaves the model as it was. `replicate` copies *and* connects.
    """
    # A second model on cuda:1, which no optimizer trains.
    models = _with_a_copy(model)
    return _loop(model, inputs, steps, replicas=lambda model: models)


@also(a_copy_is_not_a_replica)
def _(model, inputs, steps):
    return _loop(model, inputs, steps, replicas=_with_a_copy)


@also(a_copy_is_not_a_replica)
def copy_trained(model: nn.Module, inputs: Sequence[Sequence[Tensor]], steps: int) -> list[float]:
    return _loop(copy.deepcopy(model), inputs, steps)


@wrong
def no_step(model, inputs, steps):
    """the weights of the model have not changed. `optimizer.step()` is missing, it finds no gradients because they have
    just been cleared, or the optimizer has other weights than the model's.
    """
    return _loop(model, inputs, steps, rate=0.0)


@wrong
def gradients_kept(model, inputs, steps):
    """this is what comes out when gradients of earlier steps are still there: `backward` adds to them. `model` comes
    with some, so clear them before the first `backward` as well.

    Source: what wenet-e2e/wekws pull request 73, 2022, repairs
    """
    return _loop(model, inputs, steps, clears=False)


@also(gradients_kept)
def _(model, inputs, steps):
    return _loop(model, inputs, steps, clears=False, clears_after=True)


@wrong
def on_one_GPU(model: nn.Module, inputs: Sequence[Sequence[Tensor]], steps: int) -> list[float]:
    """the losses are right, and all of the work was done on cuda:0. `replicate` makes the second one."""
    return _loop(model, inputs, steps, replicas=lambda model: [model, model], devices=[0, 0])


@wrong
def after_the_step(model: nn.Module, inputs: Sequence[Sequence[Tensor]], steps: int) -> list[float]:
    """these are the losses after each step. A step computes its loss, and changes the weights then."""
    later = _loop(copy.deepcopy(model), inputs, steps + 1)[1:]
    _loop(model, inputs, steps)
    return later


@wrong
def no_graph(model, inputs, steps):
    """the replicas have no graph, as under `no_grad`: nothing leads from the loss to the model's weights."""
    return _loop(model, inputs, steps, replicas=_without_graph)
