"""Return `anchors` on the device where `features` are."""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from course.kit.learn.exercise import Case, Fresh
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb00.cases import same_tensor

hints = (
    "Every tensor knows where it is.",
    "`features.device` is what `.to(...)` wants.",
    "`return anchors.to(features.device)`",
)


def beside(anchors: Tensor, features: Tensor) -> Tensor:
    """`anchors` on whichever device `features` are."""
    return anchors.to(features.device)


def cases(random: Random) -> Sequence[Case]:
    """The last features are in half precision, which the anchors must not become."""
    places: list[tuple[str, torch.dtype]] = [("cuda:1", torch.float32), ("cuda:0", torch.float32)]
    places += [("cpu", torch.float32), ("cuda:1", torch.float16)]
    return [
        Fresh((torch.full((random.randint(1, 5), 4), 2049.0), torch.zeros(2, device=place, dtype=dtype)))
        for place, dtype in places
    ]


agree = same_tensor


@wrong
def one_GPU_for_all(anchors, features):
    """this is what a function gives that sends all anchors to one GPU, the *current* one or one that it names. It need
    not be that of the features (notebook 04), and then torch refuses to add the two.

    Source: as in lucastabelini/LaneATT issue 96, 2022
    """
    return anchors.cuda()


@also(one_GPU_for_all)
def _(anchors, features):
    return anchors.to("cuda:1")


@wrong
def left_behind(anchors, features):
    """these are the anchors where they were made. Then `features + anchors` meets two devices.

    Source: as in lucastabelini/LaneATT issue 96, 2022
    """
    return anchors


@wrong
def the_type_as_well(anchors, features):
    """this is what `anchors.to(features)` gives. It takes the *type* of the features along with their device, and in
    half precision there is no 2049: a box of that size moves by a pixel.
    """
    return anchors.to(features)
