"""Call `function`, which takes and returns NumPy arrays, with `scores` and `others`: tensors become arrays, everything
else stays as it is. It returns a tuple of arrays; return them as tensors, each in its own dtype, on the device of
`scores`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong

hints = (
    "The way there: `x.detach().cpu().numpy()`, and only for what is a tensor.",
    "The way back: which device is right, whatever is current? Ask `scores`.",
    "`tuple(torch.from_numpy(array).to(scores.device) for array in function(*arrays))`",
)


@dataclass(frozen=True)
class Current(Case):
    """A call while the GPU number `gpu` is current."""

    gpu: int = 0

    def call(self, function: Callable[..., Any]) -> Any:
        with torch.cuda.device(self.gpu):
            return super().call(function)

    def show(self, name: str) -> str:
        return f"{super().show(name)} while cuda:{self.gpu} is current"


@dataclass(frozen=True)
class BestBoxes:
    """Scores, boxes and a list in, the best `count` boxes, their labels and a mask out, all of them arrays."""

    count: int

    def __call__(self, scores: np.ndarray, boxes: np.ndarray, classes: list[str]) -> tuple[np.ndarray, ...]:
        if not isinstance(classes, list):
            raise TypeError(f"`classes` must be the list of names that was given, got {type(classes).__name__}")
        order = np.argsort(-scores, kind="stable")[: self.count]
        return boxes[order], order % len(classes), scores[order] > 0.5

    def __repr__(self) -> str:
        return f"<the best {self.count} boxes, in NumPy>"


def in_numpy(function: Callable[..., tuple[np.ndarray, ...]], scores: Tensor, *others: Any) -> tuple[Tensor, ...]:
    arrays = [x.detach().cpu().numpy() if isinstance(x, Tensor) else x for x in (scores, *others)]  # noqa: FL006 on purpose
    return tuple(torch.from_numpy(array).to(scores.device) for array in function(*arrays))  # noqa: FL006 on purpose


def _brought(bring: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., tuple[Tensor, ...]]:
    def answer(function: Callable[..., Any], scores: Tensor, *others: Any) -> tuple[Tensor, ...]:
        return tuple(bring(result.cpu(), scores) for result in in_numpy(function, scores, *others))

    return answer


def _entered(result: Tensor, scores: Tensor) -> Tensor:
    with torch.cuda.device(scores.get_device()):
        return result.cuda()


def cases(random: Random) -> Sequence[Case]:
    """Scores on several devices while different ones are current; boxes as a tensor or as an array."""
    places = [("cuda:1", 0), ("cuda:0", 1), ("cuda:1", 1), ("cpu", 0)]
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    cases: list[Case] = []
    for k, (device, current) in enumerate(places * 2):
        n = 6 if k == 0 else random.randint(3, 12)
        scores = torch.rand(n, generator=generator).to(device).requires_grad_()
        boxes = torch.rand(n, 4, generator=generator)
        given = boxes.numpy() if k % 2 == 0 else boxes.to(device).requires_grad_()
        cases.append(Current((BestBoxes(random.randint(1, n)), scores, given, ["disc", "square", "star"]), gpu=current))
    return cases


def _same_tensors(given: Any, expected: tuple[Tensor, ...]) -> bool:
    pairs = zip(given, expected, strict=True)
    return all(a.device == b.device and a.dtype == b.dtype and torch.equal(a, b) for a, b in pairs)


agree = _same_tensors


@wrong
def on_the_current_device(*given):
    """this is what a function gives that brings its results to the current device. It is right while somebody has
    entered the device of `scores`, and wrong in a thread of one's own.

    Source: the post on a multi-GPU Faster R-CNN, about 2017, before its repair
    """
    return _brought(lambda result, scores: result.cuda())(*given)


@wrong
def entered_the_device(*given):
    """this is right on GPUs. It is how a function ends that asks `get_device()` and calls `.cuda()`: for scores on the
    CPU the number is -1, which enters nothing, so the results go to a GPU; and `.cuda(-1)` raises.

    Source: the post on a multi-GPU Faster R-CNN, about 2017, its repair
    """
    return _brought(_entered)(*given)


also(entered_the_device)(_brought(lambda result, scores: result.cuda(scores.get_device())))


@wrong
def a_GPU_by_number(*given):
    """this is what the number of a GPU gives, written into the function. The scores may be on a different one: ask
    them, `scores.device`.

    Source: longcw/faster_rcnn_pytorch issue 3, 2017, whose author had one GPU to test on
    """
    return _brought(lambda result, scores: result.to("cuda:0"))(*given)


@wrong
def left_on_the_CPU(*given):
    """these results stay on the CPU, where NumPy made them. They belong on the device of the scores."""
    return _brought(lambda result, scores: result)(*given)


@wrong
def the_others(function: Callable[..., Any], scores: Tensor, *others: Any) -> tuple[Tensor, ...]:
    """of `others`, too, the tensors become arrays, and everything else is handed over as it is: an array has no
    `.cpu()`, and a list stays a list. Ask `isinstance(x, torch.Tensor)` for each.
    """
    arrays = function(scores.detach().cpu().numpy(), *others)  # noqa: FL006 on purpose
    return tuple(torch.from_numpy(array).to(scores.device) for array in arrays)  # noqa: FL006 on purpose


@also(the_others)
def others_as_tensors(function: Callable[..., Any], scores: Tensor, *others: Any) -> tuple[Tensor, ...]:
    return the_others(function, scores, *(x.detach().cpu().numpy() for x in others))  # noqa: FL006 on purpose


@also(the_others)
def others_as_arrays(function: Callable[..., Any], scores: Tensor, *others: Any) -> tuple[Tensor, ...]:
    arrays = (x.detach().cpu().numpy() if isinstance(x, Tensor) else np.asarray(x) for x in others)  # noqa: FL006 on purpose
    return the_others(function, scores, *arrays)


@wrong
def labels_became_floats(*given):
    """every result is a float here. Labels are integers, and cross_entropy refuses them as floats.

    Source: the default of `np_to_variable` in the post on a multi-GPU Faster R-CNN, about 2017
    """
    return _brought(lambda result, scores: result.float().to(scores.device))(*given)
