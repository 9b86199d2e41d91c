"""Exercises of notebook 17: the arguments of a kernel, its memory, and what it must be compiled for."""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from course.learn.exercise import Case, Exercise, Mistake


def kernel_rois(boxes: Tensor, images: Tensor) -> Tensor:
    """Boxes (R, 4) as (y1, x1, y2, x2) and images (R,) int64 to what a kernel reads: (R, 5) index, x1, y1, x2, y2."""
    return torch.cat([images[:, None].to(boxes), boxes[:, [1, 0, 3, 2]]], dim=1).contiguous()


def memory_order(tensor: Tensor) -> list[int]:
    """The numbers of a tensor in the order in which they lie in memory, from its first address on."""
    return tensor.as_strided((tensor.numel(),), (1,)).tolist()


def compilations(launches: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """What has to be compiled for launches of (kernel, device): each pair once, at its first launch."""
    return list(dict.fromkeys(launches))


def _roi_cases(random: Random) -> Sequence[Case]:
    fixed = [Case((torch.tensor([[1.0, 2.0, 3.0, 4.0]]), torch.tensor([1])))]
    for _ in range(8):
        regions = random.randint(0, 6)
        boxes = torch.tensor([[float(random.randint(0, 99)) for _ in range(4)] for _ in range(regions)]).view(-1, 4)
        fixed.append(Case((boxes, torch.tensor([random.randint(0, 3) for _ in range(regions)], dtype=torch.int64))))
    return fixed


def _memory_cases(random: Random) -> Sequence[Case]:
    square = torch.arange(6).view(2, 3)
    views = [square, square.T, torch.arange(24).view(1, 2, 3, 4).permute(0, 2, 3, 1)]
    for _ in range(8):
        size = [random.randint(1, 4) for _ in range(4)]
        order = random.sample(range(4), 4)
        views.append(torch.tensor(random.sample(range(300), 300)[: torch.Size(size).numel()]).view(size).permute(order))
    return [Case((view,)) for view in views]


def _launch_cases(random: Random) -> Sequence[Case]:
    fixed = [[("roi_forward", 0), ("roi_forward", 1)], [("roi_forward", 0), ("roi_forward", 0)], []]
    for _ in range(8):
        names = ("roi_forward", "roi_backward")
        fixed.append([(random.choice(names), random.randrange(4)) for _ in range(random.randint(2, 9))])
    return [Case((launches,)) for launches in fixed]


def _by_name(launches: list[tuple[str, int]]) -> list[tuple[str, int]]:
    first = dict(reversed(launches))
    return [pair for pair in dict.fromkeys(launches) if first[pair[0]] == pair[1]]


def _unswapped(boxes: Tensor, images: Tensor) -> Tensor:
    return torch.cat([images[:, None].to(boxes), boxes], dim=1)


def _equal(given: object, expected: Tensor) -> bool:
    return isinstance(given, Tensor) and given.shape == expected.shape and torch.equal(given.to(expected), expected)


EXERCISES = (
    Exercise(
        key="17.kernel_rois",
        task="From boxes (R, 4) as (y1, x1, y2, x2) and image indices (R,) to rois (R, 5): index, x1, y1, x2, y2.",
        reference=kernel_rois,
        cases=_roi_cases,
        agree=_equal,
        hints=(
            "Which of the four numbers stands where? The kernel reads x first.",
            "`boxes[:, [1, 0, 3, 2]]` picks columns in another order; `torch.cat` wants one dtype.",
            "`torch.cat([images[:, None].to(boxes), boxes[:, [1, 0, 3, 2]]], dim=1)`",
        ),
        mistakes=(
            Mistake(
                "y first",
                "you left y before x. Every kernel reads x first, and a square map never complains.",
                "chenyuntc/simple-faster-rcnn-pytorch, 2017, faster_rcnn_vgg16.py, where the line that swaps is marked "
                "important",
                answers=(_unswapped,),
            ),
        ),
    ),
    Exercise(
        key="17.memory_order",
        task="The numbers of a dense tensor, a list, in the order in which a kernel meets them behind its data_ptr().",
        reference=memory_order,
        cases=_memory_cases,
        hints=(
            "A kernel knows an address and counts up. Strides do not travel with a pointer.",
            "`permute` and `.T` change how a tensor is read, not what lies in memory; `flatten` reads by the strides.",
            "`tensor.as_strided((tensor.numel(),), (1,)).tolist()`",
        ),
        mistakes=(
            Mistake(
                "by the strides",
                "you gave the order that indexing gives. That is memory's order after `.contiguous()`, not before.",
                "a guide to Faster R-CNN on several GPUs, about 2017, hands a permuted view to its C code "
                "(docs/verdicts.md, post 000)",
                answers=(lambda tensor: tensor.flatten().tolist(),),
            ),
        ),
    ),
    Exercise(
        key="17.compilations",
        task="The (kernel, device) pairs that must be compiled for a list of launches, in the order of first need.",
        reference=compilations,
        cases=_launch_cases,
        hints=(
            "A compiled function belongs to the device that was current when it was loaded.",
            "So a cache of kernels has two keys. Which?",
            "`list(dict.fromkeys(launches))`: a dict keeps the first of each, in order",
        ),
        mistakes=(
            Mistake(
                "once for all devices",
                "you compiled each kernel for the first device only. On the others it is an invalid resource handle.",
                "jonkhler/s2cnn issue 8, 2018: a kernel behind an lru_cache without the device, under DataParallel",
                answers=(_by_name,),
            ),
            Mistake(
                "every time",
                "you compiled at every launch: right, and slower than the pooling.",
                "cupy/cupy issue 3193, 2020, on keeping raw kernels, and by what key",
                answers=(lambda launches: list(launches),),
            ),
        ),
    ),
)
