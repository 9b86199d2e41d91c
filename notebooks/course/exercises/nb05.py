"""Exercises of notebook 05: one argument list for each device, a training loop by hand."""

import copy
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from course.learn.exercise import Case, Exercise, Mistake


def argument_lists(blobs: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[list[Any]]:
    return [[blob[name] for name in names] for blob in blobs]


def _blob_cases(random: Random) -> Sequence[Case]:
    names = ["im_data", "im_info", "gt_boxes", "gt_ishard", "dontcare_areas"]
    cases = []
    for gpus in (1, 2, 4, *(random.randint(2, 8) for _ in range(5))):
        keys = random.sample(names, len(names))  # a loader need not build its dict in the order of the signature
        blobs = [{key: f"{key} {random.randrange(1000)}" for key in keys} for _ in range(gpus)]
        cases.append(Case((blobs, names)))
    return cases


def _one_list_of_lists(blobs: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[list[Any]]:
    return [[blob[name] for blob in blobs] for name in names]


def _same_lists(given: Any, expected: Sequence[Sequence[Any]]) -> bool:
    """Lists or tuples: `parallel_apply` takes both."""
    mine, right = (
        [part if isinstance(part, str | dict) else list(part) for part in lists] for lists in (given, expected)
    )
    return mine == right


class _Boxes(nn.Module):
    """One layer that guesses a box for a picture. Returns the sum of distances to the true boxes, and their number."""

    def __init__(self) -> None:
        super().__init__()
        self.box = nn.Linear(6, 4)

    def __repr__(self) -> str:
        return "<a layer that guesses a box>"

    def forward(self, image: Tensor, boxes: Tensor) -> tuple[Tensor, Tensor]:
        image, boxes = image.cuda(), boxes.cuda()  # noqa: FL001 the current GPU
        distances = (self.box(image) - boxes).abs().sum(1)
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


def _replicas_once(model: nn.Module, inputs: Sequence[Sequence[Tensor]], steps: int) -> list[float]:
    replicas = nn.parallel.replicate(model, [0, 1])
    return _loop(model, inputs, steps, replicas=replicas)


def _no_devices(model: nn.Module, inputs: Sequence[Sequence[Tensor]], steps: int) -> list[float]:
    return _loop(model, inputs, steps, devices=None)


def _mean_of_means(model: nn.Module, inputs: Sequence[Sequence[Tensor]], steps: int) -> list[float]:
    return _loop(model, inputs, steps, reduce=lambda sums, counts: (sums / counts).mean())


def _both_sums(model: nn.Module, inputs: Sequence[Sequence[Tensor]], steps: int) -> list[float]:
    return _loop(model, inputs, steps, reduce=lambda sums, counts: sums.sum())


def _backward_of_the_sum(model: nn.Module, inputs: Sequence[Sequence[Tensor]], steps: int) -> list[float]:
    """Returns the mean, and calls backward on the sum."""
    return _loop(model, inputs, steps, backward=lambda sums, counts: sums.sum())


def _backward_of_each_mean(model: nn.Module, inputs: Sequence[Sequence[Tensor]], steps: int) -> list[float]:
    """The mean of each device, each with a backward of its own."""

    def mean(sums: Tensor, counts: Tensor) -> Tensor:
        return (sums / counts).mean()

    return _loop(model, inputs, steps, reduce=mean, backward=lambda sums, counts: (sums / counts).sum())


def _deep_copy(model: nn.Module, inputs: Sequence[Sequence[Tensor]], steps: int) -> list[float]:
    """A second model on cuda:1, which no optimizer trains."""
    return _loop(model, inputs, steps, replicas=[model, copy.deepcopy(model).to("cuda:1")])  # noqa: FL004 the mistake itself


def _deep_copies(model: nn.Module, inputs: Sequence[Sequence[Tensor]], steps: int) -> list[float]:
    """A new copy in every step: right values in the first, and no gradient from cuda:1."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        models = [model, copy.deepcopy(model).to("cuda:1")]  # noqa: FL004 the mistake itself
        sums, counts = nn.parallel.gather(nn.parallel.parallel_apply(models, inputs, devices=[0, 1]), 0)
        loss = sums.sum() / counts.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


def _no_step(model: nn.Module, inputs: Sequence[Sequence[Tensor]], steps: int) -> list[float]:
    return _loop(model, inputs, steps, rate=0.0)


def _gradients_kept(model: nn.Module, inputs: Sequence[Sequence[Tensor]], steps: int) -> list[float]:
    return _loop(model, inputs, steps, clears=False)


def _loop(
    model: nn.Module,
    inputs: Sequence[Sequence[Tensor]],
    steps: int,
    replicas: Any = None,
    devices: Any = (0, 1),
    reduce: Any = lambda sums, counts: sums.sum() / counts.sum(),
    clears: bool = True,
    backward: Any = None,
    rate: float = 0.1,
) -> list[float]:
    """The loop with one thing done differently."""
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    losses = []
    for _ in range(steps):
        used = nn.parallel.replicate(model, [0, 1]) if replicas is None else replicas
        outputs = nn.parallel.parallel_apply(used, inputs, devices=devices and [*devices])
        gathered = nn.parallel.gather(outputs, 0)
        loss = reduce(*gathered)
        if clears:
            optimizer.zero_grad()
        (loss if backward is None else backward(*gathered)).backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()  # read once at the end: each step would wait for it


class _Fresh(Case):
    """Each call trains a model of its own: what one answer has trained is not handed to the next."""

    def call(self, function: Any) -> Any:
        return function(*copy.deepcopy(self.args))

    def show(self, name: str) -> str:
        model, inputs, steps = self.args
        return f"{name}({model}, <lists with {' and '.join(str(len(boxes)) for _, boxes in inputs)} boxes>, {steps})"


def _training_cases(random: Random) -> Sequence[Case]:
    cases = []
    for steps in (1, 2, *(random.randint(2, 4) for _ in range(3))):
        torch.manual_seed(random.randrange(2**31))
        inputs = [[torch.rand(1, 6), torch.rand(boxes, 4)] for boxes in random.sample(range(1, 9), 2)]
        cases.append(_Fresh((_Boxes().cuda(), inputs, steps)))  # noqa: FL001 any GPU
    return cases


def _close(given: Any, expected: Sequence[float]) -> bool:
    """Lists of numbers, or of tensors that may have a graph."""
    numbers = [value.item() if isinstance(value, Tensor) else float(value) for value in given]
    return len(numbers) == len(expected) and all(
        abs(mine - right) < 1e-4 * max(1, abs(right)) for mine, right in zip(numbers, expected, strict=True)
    )


EXERCISES = (
    Exercise(
        key="05.argument_lists",
        task="For each blob, a dict, the list of its values in the order of `names`, the arguments of forward.",
        reference=argument_lists,
        cases=_blob_cases,
        agree=_same_lists,
        hints=(
            "One list for each blob, so one for each device.",
            "The order is that of `names`, whatever the order of the dict; nothing is left out.",
            "`[[blob[name] for name in names] for blob in blobs]`",
        ),
        mistakes=(
            Mistake(
                "without the first",
                "you left out the first argument. Every other then moves up by one, and forward takes the second "
                "for the first.",
                "the loop of the guide to a multi-GPU Faster R-CNN, about 2017",
                answers=(lambda blobs, names: [[blob[name] for name in names[1:]] for blob in blobs],),
            ),
            Mistake(
                "in the order of the dict",
                "you took the values in the order of the dict, or of the alphabet. A loader may build a dict in any "
                "order; forward takes its arguments in the order of its signature, which is that of `names`.",
                "what code42/code42cli pull request 27, 2020, repairs in a command line",
                answers=(
                    lambda blobs, names: [[*blob.values()] for blob in blobs],
                    lambda blobs, names: [[blob[name] for name in sorted(names)] for blob in blobs],
                ),
            ),
            Mistake(
                "one list for each argument",
                "you made one list for each argument. `parallel_apply` takes one for each replica: it counts them.",
                "the assertion asked about in zhanghang1989/PyTorch-Encoding issue 202, 2019",
                answers=(_one_list_of_lists,),
            ),
            Mistake(
                "dicts",
                "you made a dict for each replica. `parallel_apply` calls `module(*arguments)` with each list; dicts "
                "of arguments by name are its third parameter, `kwargs_tup`.",
                answers=(lambda blobs, names: [{name: blob[name] for name in names} for blob in blobs],),
            ),
            Mistake(
                "one list for all",
                "you put the arguments of all devices into one list. `parallel_apply` takes a list *of lists*, one for "
                "each replica.",
                answers=(lambda blobs, names: [blob[name] for blob in blobs for name in names],),
            ),
        ),
    ),
    Exercise(
        key="05.train",
        task="Train `model` by hand on cuda:0 and cuda:1 for `steps` steps of SGD, learning rate 0.1, and return the "
        "loss of each step, a list of numbers. `inputs` has a list of arguments for each device, on the CPU; `model` "
        "returns the sum of its losses and their number, and the loss of a step is the mean over both devices.",
        reference=train,
        cases=_training_cases,
        agree=_close,
        hints=(
            "Five calls: `replicate`, `parallel_apply`, `gather`, `backward`, `optimizer.step()`. Which of them may "
            "stand before the loop?",
            "`parallel_apply(replicas, inputs, devices=[0, 1])`, because the model calls a bare `.cuda()`; "
            "`sums, counts = gather(outputs, 0)`.",
            "The loss is `sums.sum() / counts.sum()`, as in notebook 03; `optimizer.zero_grad()` before `backward`.",
        ),
        mistakes=(
            Mistake(
                "replicas made once",
                "you made the replicas before the loop. After the first step they hold weights of two different ages, "
                "and autograd refuses.",
                "EPFL-LCN/pub-illing2021-neurips issue 3, 2023",
                answers=(_replicas_once,),
            ),
            Mistake(
                "no devices",
                "you called `parallel_apply` without `devices`. All its threads then work on the caller's GPU.",
                "what pytorch/pytorch pull request 1880, 2017, gave `parallel_apply` its `devices` for",
                answers=(_no_devices,),
            ),
            Mistake(
                "mean of means",
                "you took the mean of the two means. The GPUs have different numbers of boxes: add the sums, add the "
                "counts, divide once.",
                "met with gradient accumulation in huggingface/transformers issue 34242, 2024; see notebook 03",
                answers=(_mean_of_means, _backward_of_each_mean),
            ),
            Mistake(
                "not divided",
                "you called backward on the sum of the losses of all boxes, and did not divide it by their number.",
                "huggingface/transformers issue 34242, 2024, on what to divide a gathered loss by",
                answers=(_both_sums, _backward_of_the_sum),
            ),
            Mistake(
                "a copy is not a replica",
                "you put a `deepcopy` of the model on cuda:1. It has weights of its own: its gradients do not arrive "
                "in the model, and no optimizer changes it. `replicate` copies *and* connects.",
                answers=(_deep_copy, _deep_copies),
            ),
            Mistake(
                "no step",
                "your losses are those of a model that does not change: `optimizer.step()` is missing, or the "
                "optimizer has the weights of a copy.",
                answers=(_no_step,),
            ),
            Mistake(
                "gradients kept",
                "you did not clear the gradients: from the second step on, those of all steps before are added.",
                "what wenet-e2e/wekws pull request 73, 2022, repairs",
                answers=(_gradients_kept,),
            ),
        ),
    ),
)
