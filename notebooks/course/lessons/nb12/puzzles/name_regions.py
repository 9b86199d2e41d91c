"""Two tensors (R,), names and scores, from logits (R, C + 1) whose last column is the background: the best of the C
classes, and its share of the softmax over all C + 1.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong

hints = (
    "Two steps: shares of all C + 1 answers, then the best of the first C of them.",
    "The order of the two matters. What does the softmax of a region of background look like?",
    "`scores, names = logits.softmax(dim=1)[:, :-1].max(dim=1)`, and return the names first.",
)


def name_regions(logits: Tensor) -> tuple[Tensor, Tensor]:
    scores, names = logits.softmax(dim=1)[:, :-1].max(dim=1)
    return names, scores


def cases(random: Random) -> Sequence[Case]:
    """Regions of a class and regions of background, from 2 to 11 columns."""
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    fixed = torch.tensor([[4.0, 0.0, 1.0], [0.0, 1.0, 5.0], [1.0, 3.0, 2.0]])
    far = torch.tensor([[200.0, 1.0, 199.0], [-200.0, -201.0, -199.0]])  # their exp is infinite, or 0
    drawn = [
        torch.randn(n, c, generator=generator) * 3
        for n, c in ((random.randint(12, 40), 11), (random.randint(3, 11), 4), (1, 2))
    ]
    return [Case((logits,)) for logits in (fixed, far, *drawn)]


def _same_names(given: Any, expected: tuple[Tensor, Tensor]) -> bool:
    """Both tensors, in this order, scores within the rounding of float32."""
    if not isinstance(given, tuple | list) or len(given) != 2 or not all(isinstance(x, Tensor) for x in given):
        return False
    names, scores = given
    if names.shape != expected[0].shape or scores.shape != expected[1].shape:
        return False
    if names.is_floating_point() != expected[0].is_floating_point():
        return False  # names are positions
    pairs = zip((names, scores), expected, strict=True)
    return all(torch.allclose(mine.double(), right.double(), atol=1e-6, equal_nan=True) for mine, right in pairs)


agree = _same_names


@wrong
def scores_first(logits: Tensor) -> tuple[Tensor, Tensor]:
    """this is a pair with the scores first. `max(dim=1)` gives the largest values and then their positions. The names
    are the positions, and they were asked for first.
    """
    scores, names = logits.softmax(dim=1)[:, :-1].max(dim=1)
    return scores, names


@also(scores_first)
def max_as_it_is(logits: Tensor) -> Any:
    return logits.softmax(dim=1)[:, :-1].max(-1)


@wrong
def background_is_a_class(logits: Tensor) -> tuple[Tensor, Tensor]:
    """this is what a function gives that lets the background win. The detector then reports objects of a class C that
    does not exist.

    Source: matterport/Mask_RCNN issue 475, 2018, asks why detections come out as BG
    """
    scores, names = logits.softmax(dim=1).max(dim=1)
    return names, scores


@also(background_is_a_class)
def score_of_the_best_class(logits: Tensor) -> tuple[Tensor, Tensor]:
    return logits.argmax(dim=1), name_regions(logits)[1]


@wrong
def background_first(logits: Tensor) -> tuple[Tensor, Tensor]:
    """this is what a function gives that takes the first column for the background. Here it is the last one; both
    conventions are in use, and nothing raises.

    Source: facebookresearch/detectron2 issue 524, 2019: it changed from 0 to the number of classes
    """
    scores, names = logits.softmax(dim=1)[:, 1:].max(dim=1)
    return names, scores


@also(background_first)
def names_from_one(logits: Tensor) -> tuple[Tensor, Tensor]:
    names, scores = background_first(logits)
    return names + 1, scores


@wrong
def without_the_background(logits: Tensor) -> tuple[Tensor, Tensor]:
    """this is what a softmax gives without the column of the background. Then the scores of the classes add up to 1 in
    every region, and the detector is sure of something where there is nothing.

    Source: lyycfairy's background pictures with scores of 0.95, amdegroot/ssd.pytorch issue 356, 2019, look so
    """
    scores, names = logits[:, :-1].softmax(dim=1).max(dim=1)
    return names, scores


@wrong
def no_softmax(logits: Tensor) -> tuple[Tensor, Tensor]:
    """these scores are not shares of the whole: a logit is any number, the logarithm of a share is not a share, and a
    sigmoid does not know the other answers of the region.

    Source: the raw scores of chenyuntc/simple-faster-rcnn-pytorch issue 67, 2018
    """
    scores, names = logits[:, :-1].max(dim=1)
    return names, scores


@also(no_softmax)
def sigmoids(logits: Tensor) -> tuple[Tensor, Tensor]:
    scores, names = logits[:, :-1].sigmoid().max(dim=1)
    return names, scores


@also(no_softmax)
def logarithms(logits: Tensor) -> tuple[Tensor, Tensor]:
    scores, names = logits.log_softmax(dim=1)[:, :-1].max(dim=1)
    return names, scores


@wrong
def exp_of_large_logits(logits: Tensor) -> tuple[Tensor, Tensor]:
    """this is what the exponentials of the logits themselves give. `exp` of 200 is infinite in float32, that of -200 is
    0, and a share of either is NaN. `softmax` takes the largest logit off first, which changes no share.
    """
    shares = (logits.exp() / logits.exp().sum(dim=1, keepdim=True))[:, :-1]
    return shares.argmax(dim=1), shares.amax(dim=1)


@wrong
def down_the_columns(logits: Tensor) -> tuple[Tensor, Tensor]:
    """this is what a function gives that goes down a column, where a region is a row. Its answers are compared with
    each other, not with those of other regions: `dim=1`.
    """
    scores, names = logits.softmax(dim=0)[:, :-1].max(dim=1)
    return names, scores


@also(down_the_columns)
def best_of_each_column(logits: Tensor) -> tuple[Tensor, Tensor]:
    scores, names = logits.softmax(dim=1)[:, :-1].max(dim=0)
    return names, scores


@wrong
def regions_left_out(logits: Tensor) -> tuple[Tensor, Tensor]:
    """this is what is left without the regions of background. They keep their row, with a low score, so the number of
    rows does not depend on the picture.
    """
    return name_regions(logits[logits.argmax(dim=1) < logits.shape[1] - 1])
