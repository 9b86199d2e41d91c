"""Exercises of notebook 00: three lines that most multi-GPU bugs are made of."""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from course.learn.exercise import Case, Exercise, Mistake


def on_gpu(x: Tensor, k: int) -> Tensor:
    """`x` on GPU number k: itself where it lies there already, or else a copy."""
    return x.to(torch.device("cuda", k))


def beside(anchors: Tensor, features: Tensor) -> Tensor:
    """`anchors` on whichever device `features` are."""
    return anchors.to(features.device)


def idle_gpus(rows: int, devices: int) -> int:
    """How many of `devices` GPUs get no row of a batch of `rows` rows, 1 or more."""
    size = -(-rows // devices)  # rounded up: the rows of every chunk but the last
    return devices - -(-rows // size)


def _same_tensor(given: object, expected: Tensor) -> bool:
    """Equal values on the same device."""
    return isinstance(given, Tensor) and given.device == expected.device and torch.equal(given, expected)


def _on_gpu_cases(random: Random) -> Sequence[Case]:
    places = ["cpu", "cpu", "cuda:1", "cuda:1"]
    return [Case((torch.arange(random.randint(1, 5), device=d), k)) for k, d in zip((0, 1, 0, 1), places, strict=True)]


def _beside_cases(random: Random) -> Sequence[Case]:
    places = [torch.device("cuda", 1), torch.device("cuda", 0), torch.device("cpu")]
    return [Case((torch.zeros(random.randint(1, 5), 4), torch.zeros(2, device=place))) for place in places]


def _idle_cases(random: Random) -> Sequence[Case]:
    fixed = [(10, 2), (10, 4), (9, 4), (10, 8), (5, 8), (1, 1)]
    return [Case(pair) for pair in fixed + [(random.randint(1, 64), random.randint(1, 8)) for _ in range(30)]]


EXERCISES = (
    Exercise(
        key="00.on_gpu",
        task="Return `x` on GPU number `k`, wherever it lies.",
        reference=on_gpu,
        cases=_on_gpu_cases,
        agree=_same_tensor,
        hints=(
            "`x.to(...)` takes a device.",
            "A device can be written as a name, `'cuda:1'`, or made from parts: `torch.device('cuda', 1)`.",
            "`return x.to(torch.device('cuda', k))`",
        ),
        mistakes=(
            Mistake(
                "current device",
                "you sent everything to the *current* GPU, GPU 0 unless someone changed it; `k` was not asked.",
                "as in pytorch/pytorch issue 6933, 2018",
                answers=(lambda x, k: x.cuda(), lambda x, k: x.to("cuda:0")),
            ),
            Mistake(
                "not in place",
                "you returned `x` as it was. `x.to(...)` does not move `x`, it returns a new tensor: return that "
                "one, or write `x = x.to(...)`.",
                answers=(lambda x, k: x,),
            ),
        ),
    ),
    Exercise(
        key="00.beside",
        task="Return `anchors` on the device where `features` are.",
        reference=beside,
        cases=_beside_cases,
        agree=_same_tensor,
        hints=(
            "Every tensor knows where it is.",
            "`features.device` is what `.to(...)` wants.",
            "`return anchors.to(features.device)`",
        ),
        mistakes=(
            Mistake(
                "one GPU for all",
                "you sent them to the *current* GPU, or to one that you named, which need not be that of the features "
                "(notebook 04). Where it is not, torch refuses to add the two.",
                "as in lucastabelini/LaneATT issue 96, 2022",
                answers=(lambda anchors, features: anchors.cuda(), lambda anchors, features: anchors.to("cuda:1")),
            ),
            Mistake(
                "left behind",
                "you left the anchors where they were made. Then `features + anchors` meets two devices.",
                "as in lucastabelini/LaneATT issue 96, 2022",
                answers=(lambda anchors, features: anchors,),
            ),
        ),
    ),
    Exercise(
        key="00.idle_gpus",
        task="How many of `devices` GPUs get no row of a batch of `rows` rows (1 or more)?",
        reference=idle_gpus,
        cases=_idle_cases,
        hints=(
            "Each device gets `ceil(rows / devices)` rows until none are left.",
            "How many full or partial chunks of that size does the batch make?",
            "`size = -(-rows // devices)`, then `return devices - -(-rows // size)`",
        ),
        mistakes=(
            Mistake(
                "only when rows run short",
                "you counted idle GPUs only where there are fewer rows than GPUs. 9 rows on 4 GPUs make chunks of "
                "3, 3 and 3: one GPU is idle all the same.",
                "as in pytorch/pytorch issue 9226, 2018",
                answers=(lambda rows, devices: max(0, devices - rows),),
            ),
            Mistake(
                "by the remainder",
                "you took the remainder, which tells how many *rows* are missing for equal chunks, not how many GPUs "
                "have none. 10 rows on 4 GPUs make chunks of 3, 3, 3 and 1, so no GPU is idle.",
                answers=(
                    lambda rows, devices: (devices - rows % devices) % devices,
                    lambda rows, devices: devices - rows % devices,
                ),
            ),
        ),
    ),
)
