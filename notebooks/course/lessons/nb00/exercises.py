"""Exercises of notebook 00: three lines that most multi-GPU bugs are made of."""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from course.kit.learn.exercise import Case, Exercise, Fresh, Mistake


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
    """Equal values of the same type on the same device, with a graph where the right answer has one."""
    return (
        isinstance(given, Tensor)
        and (given.device, given.dtype) == (expected.device, expected.dtype)
        and torch.equal(given, expected)
        and (expected.grad_fn is None or given.grad_fn is not None)
    )


def _on_gpu_cases(random: Random) -> Sequence[Case]:
    """Whole numbers, and two that are trained: their gradient has to find the way back."""
    places = [("cpu", 0), ("cpu", 1), ("cuda:1", 0), ("cuda:1", 1)]
    whole = [Fresh((torch.arange(random.randint(1, 5), device=place), k)) for place, k in places]
    trained = [
        Fresh((torch.ones(random.randint(1, 5), device=place, requires_grad=True), k)) for place, k in places[1:3]
    ]
    return [*whole, *trained]


def _beside_cases(random: Random) -> Sequence[Case]:
    """The last features are in half precision, which the anchors must not become."""
    places: list[tuple[str, torch.dtype]] = [("cuda:1", torch.float32), ("cuda:0", torch.float32)]
    places += [("cpu", torch.float32), ("cuda:1", torch.float16)]
    return [
        Fresh((torch.full((random.randint(1, 5), 4), 2049.0), torch.zeros(2, device=place, dtype=dtype)))
        for place, dtype in places
    ]


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
                "this is what a function gives that sends everything to the *current* GPU, GPU 0 unless someone "
                "changed it, and does not ask `k`.",
                "as in pytorch/pytorch issue 6933, 2018",
                answers=(lambda x, k: x.cuda(), lambda x, k: x.to("cuda:0")),
            ),
            Mistake(
                "not in place",
                "this is `x` as it was. `x.to(...)` does not move `x`, it returns a new tensor: return that one, or "
                "write `x = x.to(...)`.",
                answers=(lambda x, k: x,),
            ),
            Mistake(
                "cuts the graph",
                "this is what comes out when the numbers go to the GPU by a way that autograd does not know, such as "
                "`.data`, `.detach()` or `.tolist()`: nothing before this line would be trained any more.",
                answers=(lambda x, k: x.detach().to(k),),
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
                "this is what a function gives that sends all anchors to one GPU, the *current* one or one that it "
                "names. It need not be that of the features (notebook 04), and then torch refuses to add the two.",
                "as in lucastabelini/LaneATT issue 96, 2022",
                answers=(lambda anchors, features: anchors.cuda(), lambda anchors, features: anchors.to("cuda:1")),
            ),
            Mistake(
                "left behind",
                "these are the anchors where they were made. Then `features + anchors` meets two devices.",
                "as in lucastabelini/LaneATT issue 96, 2022",
                answers=(lambda anchors, features: anchors,),
            ),
            Mistake(
                "the type as well",
                "this is what `anchors.to(features)` gives. It takes the *type* of the features along with their "
                "device, and in half precision there is no 2049: a box of that size moves by a pixel.",
                answers=(lambda anchors, features: anchors.to(features),),
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
                "this is what a function gives that counts idle GPUs only where there are fewer rows than GPUs. 9 rows "
                "on 4 GPUs make chunks of 3, 3 and 3: one GPU is idle all the same.",
                "as in pytorch/pytorch issue 9226, 2018",
                answers=(lambda rows, devices: max(0, devices - rows),),
            ),
            Mistake(
                "by the remainder",
                "this is what the remainder gives. It tells how many *rows* are missing for equal chunks, not how "
                "many GPUs have none. 10 rows on 4 GPUs make chunks of 3, 3, 3 and 1, so no GPU is idle.",
                answers=(
                    lambda rows, devices: (devices - rows % devices) % devices,
                    lambda rows, devices: devices - rows % devices,
                ),
            ),
        ),
    ),
)
