"""Weights (classes,) for cross_entropy on labels (S,), on their device: the background, class 0, weighs foreground /
background, every other class 1; without foreground, or without background, all weigh 1.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong

hints = (
    "Count first: foreground is `(labels > 0).sum()`, background the rest. What if one of them is 0?",
    "A background weight of 0 makes an image without objects 0 / 0: cross_entropy divides by the sum of the "
    "weights, since torch 1.11 also where that is 0.",
    "`torch.where((foreground > 0) & (background > 0), foreground / background.clamp(min=1), 1)`",
)


def same_tensor(given: Any, expected: Tensor) -> bool:
    return (
        given.device == expected.device
        and given.shape == expected.shape
        and bool(torch.allclose(given, expected, equal_nan=True))
    )


def class_weights(labels: Tensor, classes: int) -> Tensor:
    foreground = (labels > 0).sum()
    background = labels.numel() - foreground
    weights = torch.ones(classes, device=labels.device)
    both = (foreground > 0) & (background > 0)
    weights[0] = torch.where(both, foreground / background.clamp(min=1), 1)
    return weights


def _weighed(background: Callable[[Tensor, Tensor], Any]) -> Callable[[Tensor, int], Tensor]:
    """An answer whose weight of class 0 is `background` of the two counts."""

    def answer(labels: Tensor, classes: int) -> Tensor:
        foreground = (labels > 0).sum()
        weights = torch.ones(classes, device=labels.device)
        weights[0] = background(foreground, labels.numel() - foreground)
        return weights

    return answer


def cases(random: Random) -> Sequence[Case]:
    """Labels (S,) on several devices; the first sets lack foreground or background, and the last has no row."""
    fixed = [("cuda:1", [0, 0, 0]), ("cuda:0", [3, 1]), ("cpu", [2, 0, 0, 0]), ("cuda:1", [0]), ("cuda:1", [])]
    drawn = [("cuda:1", [random.choice([0, 0, 1, 2, 3]) for _ in range(random.randint(5, 40))]) for _ in range(8)]
    named = [(torch.tensor(labels, device=device, dtype=torch.int64), 4) for device, labels in fixed + drawn]
    more = random.randint(5, 12)
    named.append((torch.tensor([0, more - 1, 0]).to(named[0][0].device), more))
    return [Case(args) for args in named]


agree = same_tensor


@wrong
def epsilon_below_the_line(labels: Tensor, classes: int) -> Tensor:
    """these are the weights of a guard for the division alone, by 1e-4 or otherwise. Without foreground the weight of
    the background is 0, or as good as 0. Since torch 1.11 cross_entropy then divides 0 by 0; until 1.10 such a loss was
    0.

    Source: the post on a multi-GPU Faster R-CNN, about 2017
    """
    weights = torch.ones(classes, device=labels.device)
    foreground = (labels > 0).sum()
    weights[0] = foreground / (labels.numel() - foreground + 1e-4)
    return weights


also(epsilon_below_the_line)(_weighed(lambda foreground, background: foreground / background if background else 1))
also(epsilon_below_the_line)(_weighed(lambda foreground, background: foreground / background.clamp(min=1)))
also(epsilon_below_the_line)(_weighed(lambda foreground, background: (foreground + 1e-4) / (background + 1e-4)))


@wrong
def no_guard(labels: Tensor, classes: int) -> Tensor:
    """this divides by the number of background rows. It can be 0.

    Source: longcw/faster_rcnn_pytorch issue 53, 2017
    """
    weights = torch.ones(classes, device=labels.device)
    foreground = (labels > 0).sum()
    weights[0] = foreground / (labels.numel() - foreground)
    return weights


also(no_guard)(_weighed(lambda foreground, background: foreground / background if foreground else 1))


@wrong
def a_count_that_is_1_at_least(*given):
    """this is what comes out when at least one of each is counted: without foreground the background weighs 1 /
    background, and all classes should weigh 1.
    """
    return _weighed(lambda foreground, background: foreground.clamp(min=1) / background.clamp(min=1))(*given)


@wrong
def upside_down(*given):
    """this is background divided by foreground. There is far more background, and its weight is to make up for that:
    foreground / background.
    """
    return _weighed(lambda foreground, background: background / foreground if foreground and background else 1)(*given)


@wrong
def a_share_of_all_rows(*given):
    """this is divided by the number of all rows. The weight is foreground / background."""
    return _weighed(
        lambda foreground, background: foreground / (foreground + background) if foreground and background else 1
    )(*given)


@wrong
def on_the_current_device(labels, classes):
    """these weights are on the CPU or on the current device. Labels may lie on a different one.

    Source: the post on a multi-GPU Faster R-CNN, about 2017, before its repair
    """
    return class_weights(labels, classes).cuda()


@also(on_the_current_device)
def _(labels, classes):
    return class_weights(labels, classes).cpu()
