"""What the replicas returned, `outputs`, joined along the rows on `device`: tensors, losses of no dimension, dicts of
them and tuples of them.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb02.cases import same_outputs, same_values

hints = (
    "Start with tensors: move each to `device`, then `torch.cat`. Both are operations that autograd knows.",
    "A loss has no dimension to join along: `torch.atleast_1d(loss)` makes a row of it.",
    "A dict: for each key, gather what the replicas have under that key. A tuple: the same for each position.",
)


def gather(outputs: Sequence[Any], device: torch.device) -> Any:
    first = outputs[0]
    if isinstance(first, Tensor):
        return torch.cat([torch.atleast_1d(output).to(device) for output in outputs])
    if isinstance(first, dict):
        return {key: gather([output[key] for output in outputs], device) for key in first}
    return tuple(gather(parts, device) for parts in zip(*outputs, strict=True))


def _mean_of_losses(outputs: Sequence[Any], device: torch.device, shape: tuple[int, ...]) -> Any:
    first = outputs[0]
    if isinstance(first, Tensor):
        moved = [output.to(device) for output in outputs]
        return torch.stack(moved).mean().view(shape) if first.dim() == 0 else torch.cat(moved)
    if isinstance(first, dict):
        return {key: _mean_of_losses([output[key] for output in outputs], device, shape) for key in first}
    return tuple(_mean_of_losses(parts, device, shape) for parts in zip(*outputs, strict=True))


def cases(random: Random) -> Sequence[Case]:
    """What replicas return: tensors, losses of no dimension, dicts and tuples of them, with a graph."""
    made = torch.Generator().manual_seed(random.randrange(2**31))

    def output(gpu: int, *shape: int) -> Tensor:
        weight = torch.rand(shape, generator=made).requires_grad_()
        return weight.to(torch.device("cuda", gpu)) * 1

    def returned(kind: int) -> list[Any]:
        sizes = [random.randint(2, 9), random.randint(1, 4)]
        if kind == 0:
            return [output(gpu, rows, 3) for gpu, rows in enumerate(sizes)]
        if kind == 1:
            return [output(gpu) for gpu in range(2)]
        if kind == 2:
            return [{"boxes": output(gpu, rows, 4), "loss": output(gpu)} for gpu, rows in enumerate(sizes)]
        return [(output(gpu, rows, 2), {"loss": output(gpu)}) for gpu, rows in enumerate(sizes)]

    return [Case((returned(k % 4), torch.device("cuda", k // 4 % 2))) for k in range(16)]


def _cuts_the_graph(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return all(same_values(joined, case.call(gather)) for case, joined in zip(cases, given, strict=True))


agree = same_outputs


@wrong(recognise=_cuts_the_graph)
def cuts_the_graph(outputs: Sequence[Any], device: torch.device) -> Any:
    """the values are right, but they have no graph that leads to the replicas (as after `no_grad`, `detach` or
    `.data`): backward would not find its way back, and no weight would learn.

    Source: gathered tensors without gradients: KevinMusgrave/pytorch-metric-learning issue 10, 2020
    """
    with torch.no_grad():
        return gather(outputs, device)


@wrong
def always_on_GPU_0(outputs: Sequence[Any], device: torch.device) -> Any:
    """this is what a function gives that gathers on GPU 0, whatever `device` says. That is where all outputs meet by
    default, and where memory runs out first.

    Source: a first GPU at 10761 MB beside others at 3651 MB: mkocabas/EpipolarPose issue 22, 2019
    """
    return gather(outputs, torch.device("cuda", 0))  # noqa: FL004 the mistake itself


@wrong
def where_each_of_them_lies(outputs: Sequence[Any], device: torch.device) -> Any:
    """this is what comes of joining the outputs where they are, each on the GPU of its replica. `torch.cat` wants all
    of them on one device, so move each to `device` first.
    """
    return torch.cat(list(outputs))


@wrong
def tensors_only(outputs: Sequence[Any], device: torch.device) -> Any:
    """here a dict or a tuple is treated as a tensor. A replica may return either, and they are joined key by key or
    position by position.
    """
    return torch.cat([torch.atleast_1d(output.to(device)) for output in outputs])


@wrong
def mean_of_the_losses(outputs, device):
    """this is what a function gives that takes the mean of the losses. To gather is to join and not to compute: from
    the row of losses a program can still take the mean that it wants (notebook 03).
    """
    return _mean_of_losses(outputs, device, shape=())


@also(mean_of_the_losses)
def _(outputs, device):
    return _mean_of_losses(outputs, device, shape=(1,))


@wrong
def no_rows_to_join(outputs: Sequence[Any], device: torch.device) -> Any:
    """a loss has no dimension, so `torch.cat` has nothing to join it along. Make a row of it first."""
    return torch.cat([output.to(device) for output in outputs])
