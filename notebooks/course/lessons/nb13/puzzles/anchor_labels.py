"""Labels (N,) of anchors from their IoU (M, N) with the true boxes: 1, 0, or -1 for those between."""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb13.cases import generator_of, same_answer

hints = (
    "Start with -1 everywhere, and set what you are sure of.",
    "Every true box makes its best anchors positive, however little they overlap. In which order do you write?",
    "A row of zeros is padding, or a box that no anchor touches: its best IoU is 0, and nobody's best is that.",
)


def anchor_labels(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    best, best_of_box = iou.amax(dim=0), iou.amax(dim=1, keepdim=True)
    rescued = ((iou == best_of_box) & (best_of_box > 0)).any(dim=0)
    labels = torch.full_like(best, -1, dtype=torch.int64)
    labels[best < negative_iou] = 0
    labels[(best >= positive_iou) | rescued] = 1
    return labels


def cases(random: Random) -> Sequence[Case]:
    generator = generator_of(random)
    weak = torch.tensor([[0.9, 0.5, 0.1, 0.0], [0.0, 0.1, 0.2, 0.0], [0.0, 0.0, 0.0, 0.0]])
    drawn = [
        torch.cat([torch.rand(k, n, generator=generator) ** 3, torch.zeros(1, n)])
        for k, n in zip((1, 2, 4), random.sample(range(20, 60), 3), strict=True)
    ]
    between = torch.tensor([[0.9, 0.1, 0.0, 0.0], [0.0, 0.1, 0.5, 0.4]])  # a best one between the thresholds
    equal = torch.tensor([[0.5, 0.1, 0.5, 0.4999], [0.0, 0.0, 0.0, 0.0]])  # the last is nearly as good
    on_the_thresholds = torch.tensor([[0.75, 1.0, 0.25, 0.125], [0.125, 0.0, 0.0, 0.1875]])
    edge = Case((on_the_thresholds, 0.75, 0.25))
    return [*(Case((iou, 0.7, 0.3)) for iou in (weak, between, equal)), edge, *(Case((iou, 0.7, 0.3)) for iou in drawn)]


agree = same_answer


@wrong
def background_last(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    """here a rescued anchor whose IoU is below `negative_iou` is background after all. That comes of writing the
    background last, or of a rescue with a threshold of its own. A small box may have no better anchor, and then it has
    none at all.

    Source: ijkguo/mx-rcnn issue 104, 2018, had both at once
    """
    labels = anchor_labels(iou, positive_iou, negative_iou)
    labels[iou.amax(dim=0) < negative_iou] = 0
    return labels


@wrong
def the_best_of_all_boxes(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    """this is what a comparison with the maximum of all overlaps gives. Each box has a best anchor of its own: take the
    maximum over `dim=1`.
    """
    labels = no_rescue(iou, positive_iou, negative_iou)
    labels[((iou == iou.max()) & (iou > 0)).any(dim=0)] = 1
    return labels


@wrong
def padding_has_a_best_anchor(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    """a padded box overlaps every anchor by 0, and 0 is also its maximum: `iou == iou.amax(...)` holds for all, and
    every anchor becomes positive; `argmax` names the first
    one (and of several equal ones one alone). Ask for more than 0.

    Source: padding takes part in the loss: jwyang/faster-rcnn.pytorch issue 553, 2019
    """
    labels = anchor_labels(iou, positive_iou, negative_iou)
    labels[(iou == iou.amax(dim=1, keepdim=True)).any(dim=0)] = 1
    return labels


@also(padding_has_a_best_anchor)
def argmax_of_padding(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    labels = no_rescue(iou, positive_iou, negative_iou)
    labels[iou.argmax(dim=1)] = 1
    return labels


@wrong
def no_rescue(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    """these are the labels without the rescue: a true box whose best anchor stays below `positive_iou` has no positive
    anchor at all.

    Source: as in the second stage of torchvision's Faster R-CNN, 2019, where it is right
    """
    best = iou.amax(dim=0)
    return torch.where(best >= positive_iou, 1, torch.where(best < negative_iou, 0, -1))


@wrong
def one_of_equals(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    """this is what comes out when each box rescues one best anchor, as `argmax` finds it. If several are equally good,
    all are positive.

    Source: py-faster-rcnn, 2015, looks for all of them: `np.where(overlaps == gt_max_overlaps)`
    """
    labels = no_rescue(iou, positive_iou, negative_iou)
    labels[iou.argmax(dim=1)[iou.amax(dim=1) > 0]] = 1
    return labels


@wrong
def nearly_the_best(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    """this is what a comparison with a tolerance gives. It rescues anchors that are nearly as good as the best one, and
    only equal ones were asked for.
    """
    labels, best = anchor_labels(iou, positive_iou, negative_iou), iou.amax(dim=1, keepdim=True)
    labels[((iou > best - 1e-3) & (best > 0)).any(dim=0)] = 1
    return labels


@wrong
def the_best_box_of_each_anchor(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    """this is what a comparison with the maximum down a column gives. That is the best box of each *anchor*, which
    every anchor has. A row holds the overlaps of one box: its best anchor is the maximum over `dim=1`.
    """
    labels = no_rescue(iou, positive_iou, negative_iou)
    labels[iou.amax(dim=0) > 0] = 1  # (iou == iou.amax(dim=0)) & (iou > 0): every anchor has a best box
    return labels


@wrong
def on_the_threshold(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    """an anchor that overlaps by exactly `positive_iou` is positive, and one that overlaps by exactly `negative_iou` is
    left out: `>=` for the first, `<` for the second.
    """
    above = torch.tensor(positive_iou).nextafter(torch.tensor(1.0)).item()  # noqa: FL002 exercises are on the CPU
    return anchor_labels(iou, above, negative_iou)


@also(on_the_threshold)
def up_to(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    above = torch.tensor(negative_iou).nextafter(torch.tensor(1.0)).item()  # noqa: FL002 exercises are on the CPU
    return anchor_labels(iou, positive_iou, above)


@also(on_the_threshold)
def both_strict(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    above = torch.tensor(positive_iou).nextafter(torch.tensor(1.0)).item()  # noqa: FL002 exercises are on the CPU
    return up_to(iou, above, negative_iou)


@wrong
def thresholds_of_your_own(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    """these are the labels for the thresholds 0.6 and 0.3, whatever the function is called with."""
    return anchor_labels(iou, 0.6, 0.3)
