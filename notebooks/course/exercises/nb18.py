"""Exercises of notebook 18: class weights that stay finite, images numbered on their replica, cached anchors."""

from collections.abc import Callable, Sequence
from itertools import combinations
from random import Random
from typing import Any

import torch
from torch import Tensor

from course.learn.exercise import Case, Exercise, Mistake

POST = "the post on a multi-GPU Faster R-CNN, about 2017"


def same_tensor(given: Any, expected: Tensor) -> bool:
    return given.device == expected.device and given.shape == expected.shape and bool(torch.allclose(given, expected))


def class_weights(labels: Tensor, classes: int) -> Tensor:
    foreground = (labels > 0).sum()
    background = labels.numel() - foreground
    weights = torch.ones(classes, device=labels.device)
    both = (foreground > 0) & (background > 0)
    weights[0] = torch.where(both, foreground / background.clamp(min=1), 1)
    return weights


def _with_epsilon(labels: Tensor, classes: int) -> Tensor:
    weights = torch.ones(classes, device=labels.device)
    foreground = (labels > 0).sum()
    weights[0] = foreground / (labels.numel() - foreground + 1e-4)
    return weights


def _divided(labels: Tensor, classes: int) -> Tensor:
    weights = torch.ones(classes, device=labels.device)
    foreground = (labels > 0).sum()
    weights[0] = foreground / (labels.numel() - foreground)
    return weights


def _label_cases(random: Random) -> Sequence[Case]:
    """Labels (S,) on several devices; the first sets lack foreground or background."""
    fixed = [("cuda:1", [0, 0, 0]), ("cuda:0", [3, 1]), ("cpu", [2, 0, 0, 0]), ("cuda:1", [0])]
    drawn = [("cuda:1", [random.choice([0, 0, 1, 2, 3]) for _ in range(random.randint(5, 40))]) for _ in range(8)]
    return [Case((torch.tensor(labels, device=device), 4)) for device, labels in fixed + drawn]


def rois_of(boxes: Tensor, first_image: int) -> Tensor:
    images, count = boxes.shape[:2]
    index = torch.arange(images, device=boxes.device, dtype=boxes.dtype).repeat_interleave(count)
    return torch.cat([index[:, None], boxes.flatten(0, 1)], dim=1)


def _numbered_from(start: Callable[[int], int], step: int) -> Callable[[Tensor, int], Tensor]:
    def answer(boxes: Tensor, first_image: int) -> Tensor:
        rois = rois_of(boxes, first_image)
        rois[:, 0] = rois[:, 0] * step + start(first_image)
        return rois

    return answer


def _box_cases(random: Random) -> Sequence[Case]:
    """Boxes of one replica's images, and the number of its first image in the whole batch."""
    sizes = [(2, 3, 5), (1, 2, 1), (3, 1, 3), *((random.randint(1, 4), random.randint(1, 9), 4) for _ in range(6))]
    return [Case((torch.arange(4.0 * n * k, device=f"cuda:{first % 2}").view(n, k, 4), first)) for n, k, first in sizes]


Request = tuple[int, torch.device]


def make_anchors(size: int) -> Tensor:
    """Anchors of a map of size x size cells, on the CPU: (size * size, 2)."""
    return torch.cartesian_prod(torch.arange(float(size)), torch.arange(float(size))).view(-1, 2)


def serve_anchors(requests: Sequence[Request], make: Callable[[int], Tensor]) -> list[Tensor]:
    cache: dict[Request, Tensor] = {}
    for size, device in requests:
        if (size, device) not in cache:
            cache[size, device] = make(size).to(device)
    return [cache[request] for request in requests]


def _by_size(requests: Sequence[Request], make: Callable[[int], Tensor]) -> list[Tensor]:
    cache: dict[int, Tensor] = {}
    for size, device in requests:
        if size not in cache:
            cache[size] = make(size).to(device)
    return [cache[size] for size, _ in requests]


def _made_anew(requests: Sequence[Request], make: Callable[[int], Tensor]) -> list[Tensor]:
    return [make(size).to(device) for size, device in requests]


def _same_anchors(given: Any, expected: list[Tensor]) -> bool:
    """Devices and values agree, and the same requests got the same tensor."""
    shared = [[a is b for a, b in combinations(tensors, 2)] for tensors in (given, expected)]
    return shared[0] == shared[1] and all(map(same_tensor, given, expected)) and len(given) == len(expected)


def _request_cases(random: Random) -> Sequence[Case]:
    gpus = [torch.device("cuda", k) for k in range(2)]
    fixed = [[(4, gpus[0]), (4, gpus[1]), (4, gpus[0])], [(3, gpus[1]), (5, gpus[1]), (3, gpus[1]), (3, gpus[0])]]
    drawn = [[(random.randint(2, 4), random.choice(gpus)) for _ in range(random.randint(6, 12))] for _ in range(6)]
    return [Case((requests, make_anchors)) for requests in fixed + drawn]


EXERCISES = (
    Exercise(
        key="18.class_weights",
        task="Weights (classes,) for cross_entropy on labels (S,), on their device: the background, class 0, weighs "
        "foreground / background, every other class 1; without foreground, or without background, all weigh 1.",
        reference=class_weights,
        cases=_label_cases,
        agree=same_tensor,
        hints=(
            "Count first: foreground is `(labels > 0).sum()`, background the rest. What if one of them is 0?",
            "A background weight of 0 makes an image without objects 0 / 0: cross_entropy divides by the weights.",
            "`torch.where((foreground > 0) & (background > 0), foreground / background.clamp(min=1), 1)`",
        ),
        mistakes=(
            Mistake(
                "epsilon below the line",
                "you guard the division with 1e-4. Without foreground the weight of the background is still 0, and "
                "cross_entropy divides 0 by 0.",
                POST,
                answers=(_with_epsilon,),
            ),
            Mistake(
                "no guard",
                "you divide by the number of background rows. It can be 0.",
                "longcw/faster_rcnn_pytorch issue 53, 2017",
                answers=(_divided,),
            ),
            Mistake(
                "on the current device",
                "you made the weights on the CPU or brought them to the current device. Labels may lie on another.",
                POST + ", before its repair",
                answers=(
                    lambda labels, classes: class_weights(labels, classes).cuda(),
                    lambda labels, classes: class_weights(labels, classes).cpu(),
                ),
            ),
        ),
    ),
    Exercise(
        key="18.rois_of",
        task="Rois (N * K, 5) for RoI pooling on one replica, from its boxes (N, K, 4): the number of the image, then "
        "the box. `first_image` is the number of the replica's first image in the batch of all GPUs.",
        reference=rois_of,
        cases=_box_cases,
        agree=same_tensor,
        hints=(
            "The features that are pooled on this replica are those of its own N images. Which numbers do they have?",
            "Image 0 K times, image 1 K times, ...: `repeat_interleave`. On the device of the boxes, in their dtype.",
            "`first_image` is bait: column 0 is `torch.arange(N, device=boxes.device)`, repeated.",
        ),
        mistakes=(
            Mistake(
                "always 0",
                "you number every image 0. With two images on a replica the second one's boxes are pooled from the "
                "first, and nothing raises.",
                POST,
                answers=(_numbered_from(lambda first: 0, step=0),),
            ),
            Mistake(
                "numbered over all GPUs",
                "you number the images of the whole batch. A replica has its own chunk, and starts with 0.",
                "what vacancy/PreciseRoIPooling issue 42, 2019, warns of",
                answers=(_numbered_from(lambda first: first, step=1),),
            ),
        ),
    ),
    Exercise(
        key="18.serve_anchors",
        task="For each request (size, device) the anchors `make(size)` on that device; the same request is given the "
        "same tensor again.",
        reference=serve_anchors,
        cases=_request_cases,
        agree=_same_anchors,
        hints=(
            "A dict. What must its key hold, if two devices may ask for one size?",
            "The key is the whole request, (size, device); what is kept under it is on that device already.",
            "`if request not in cache: cache[request] = make(size).to(device)`",
        ),
        mistakes=(
            Mistake(
                "key without the device",
                "you look anchors up by size alone. Who asks second gets them on the device of who asked first.",
                "pytorch/vision issue 1255, 2019",
                answers=(_by_size,),
            ),
            Mistake(
                "no cache",
                "you make them anew at each request: right, and the work that a cache should save is done every time.",
                "the way out taken by a comment of pytorch/vision issue 1255, 2019",
                answers=(_made_anew,),
            ),
        ),
    ),
)
