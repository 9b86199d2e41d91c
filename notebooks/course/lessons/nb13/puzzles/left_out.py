"""Which anchors have more than half of themselves in don't-care areas (D, 4), D may be 0: (N,) bool."""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb13.cases import generator_of, same_answer
from frcnn_lite.ops import box_iou

hints = (
    "Of the anchor, you want the part that lies inside. What do you divide by?",
    "Not by the union: a small anchor in the middle of a large area has a tiny IoU with it.",
    "Shared square pixels, summed over the areas, against half of the anchor's own.",
)


def left_out(anchors: Tensor, areas: Tensor) -> Tensor:
    low = torch.maximum(anchors[:, None, :2], areas[:, :2])
    high = torch.minimum(anchors[:, None, 2:], areas[:, 2:])
    shared = (high - low).clamp(min=0).prod(dim=2).sum(dim=1)
    return shared > 0.5 * (anchors[:, 2:] - anchors[:, :2]).prod(dim=1)


def _shared(anchors: Tensor, areas: Tensor) -> Tensor:
    sides = torch.minimum(anchors[:, None, 2:], areas[:, 2:]) - torch.maximum(anchors[:, None, :2], areas[:, :2])
    return sides.clamp(min=0).prod(dim=2)


def _shares(anchors: Tensor, areas: Tensor) -> Tensor:
    return _shared(anchors, areas) / (anchors[:, 2:] - anchors[:, :2]).prod(dim=1, keepdim=True)


def _boxes(generator: torch.Generator, count: int) -> Tensor:
    corner = torch.rand(count, 2, generator=generator) * 80
    return torch.cat([corner, corner + 8 + torch.rand(count, 2, generator=generator) * 40], dim=1)


def cases(random: Random) -> Sequence[Case]:
    generator = generator_of(random)
    anchors = torch.tensor([[10.0, 10.0, 30.0, 30.0], [90.0, 10.0, 110.0, 30.0], [0.0, 0.0, 120.0, 120.0]])
    wide = torch.tensor([[0.0, 0.0, 100.0, 100.0]])
    halves = torch.tensor([[0.0, 0.0, 60.0, 40.0], [60.0, 0.0, 120.0, 40.0]])
    between = torch.tensor([[50.0, 10.0, 70.0, 30.0], [45.0, 30.0, 65.0, 55.0]])  # across the line of the two halves
    fixed = [Case((anchors, wide)), Case((torch.cat([anchors, between]), halves)), Case((anchors, torch.zeros(0, 4)))]
    return fixed + [Case((_boxes(generator, n), _boxes(generator, 1) * 1.5)) for n in random.sample(range(8, 40), 6)]


agree = same_answer


@wrong
def IoU(anchors: Tensor, areas: Tensor) -> Tensor:
    """this is what the IoU gives. A small anchor in the middle of a large area overlaps little of the *union*, and
    stays a negative: the network learns that there is nothing in an area that nobody has labelled.

    Source: tensorpack/tensorpack pull request 984, 2018
    """
    return (box_iou(anchors, areas) > 0.5).any(dim=1)


@wrong
def share_of_the_area(anchors: Tensor, areas: Tensor) -> Tensor:
    """this comes of dividing by the size of the area. Then only anchors that cover half of a large area are left out,
    and the small ones inside it stay.

    Source: facebookresearch/detectron2 pull request 1910, 2020
    """
    return (_shared(anchors, areas) > 0.5 * (areas[:, 2:] - areas[:, :2]).prod(dim=1)).any(dim=1)


@wrong
def area_by_area(anchors: Tensor, areas: Tensor) -> Tensor:
    """this is what a look at each area alone gives. An anchor may lie half in one area and half in its neighbour, so
    what it shares with all of them is added up.
    """
    return (_shares(anchors, areas) > 0.5).any(dim=1)


@also(area_by_area)
def largest_share(anchors: Tensor, areas: Tensor) -> Tensor:
    return _shares(anchors, areas).amax(dim=1) > 0.5


@wrong
def not_clamped(anchors: Tensor, areas: Tensor) -> Tensor:
    """this is what comes out when sides that are negative are multiplied. Where a box is to the left of an area and
    above it, both are, and their product looks like something shared: `clamp(min=0)` first.
    """
    sides = torch.minimum(anchors[:, None, 2:], areas[:, 2:]) - torch.maximum(anchors[:, None, :2], areas[:, :2])
    return sides.prod(dim=2).sum(dim=1) > 0.5 * (anchors[:, 2:] - anchors[:, :2]).prod(dim=1)


@wrong
def inside_or_not(anchors: Tensor, areas: Tensor) -> Tensor:
    """this answers whether the anchor, or its middle, is in the area, or whether they touch at all. What counts is the
    share: more than half.
    """
    low, high = anchors[:, None, :2] >= areas[:, :2], anchors[:, None, 2:] <= areas[:, 2:]
    return (low & high).all(dim=2).any(dim=1)


@also(inside_or_not)
def middle_inside(anchors: Tensor, areas: Tensor) -> Tensor:
    middle = (anchors[:, None, :2] + anchors[:, None, 2:]) / 2
    return ((middle >= areas[:, :2]) & (middle <= areas[:, 2:])).all(dim=2).any(dim=1)


@also(inside_or_not)
def any_overlap(anchors: Tensor, areas: Tensor) -> Tensor:
    return (_shared(anchors, areas) > 0).any(dim=1)
