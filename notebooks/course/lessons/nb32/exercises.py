"""Exercises of notebook 32: adaptive pooling as fixed pooling, PReLU from ReLUs, and where a pixel comes from."""

from collections.abc import Sequence
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course.kit.learn.agree import near, same_values
from course.kit.learn.exercise import Case, Exercise, Mistake
from course.kit.learn.guarded import Guarded


def fixed_window(size: int, output: int) -> tuple[int, int] | None:
    """(kernel, stride) of the fixed pooling equal to adaptive pooling of `size` cells to `output`; None if none is."""
    stride, rest = divmod(size, output)
    if stride == 0 or rest > 1:
        return None
    return size - (output - 1) * stride, stride


def prelu_by_relu(x: Tensor, slopes: Tensor) -> Tensor:
    """PReLU of x (N, C, H, W), one slope a channel, by `torch.relu` alone."""
    return torch.relu(x) - slopes.view(-1, 1, 1) * torch.relu(-x)


def source(i: int, size: int, output: int) -> float:
    """Where output pixel `i` of `output` lies between the `size` input pixels: bilinear with align_corners=False."""
    return (i + 0.5) * size / output - 0.5


def _formula(size: int, output: int) -> tuple[int, int]:
    stride = size // output
    return size - (output - 1) * stride, stride


def _if_divisible(size: int, output: int) -> tuple[int, int] | None:
    return None if size % output else _formula(size, output)


def _pool_cases(random: Random) -> Sequence[Case]:
    fixed = [(7, 3), (10, 4), (8, 2), (5, 1), (6, 6), (13, 4), (64, 7), (11, 4), (1, 3), (3, 4)]
    drawn = []
    for _ in range(24):
        output = random.randint(2, 24)
        drawn.append((output * random.randint(0, 6) + random.choice([0, 1, 1, random.randint(2, 30)]) or 1, output))
    return [Case(sizes) for sizes in fixed + drawn]


def _prelu_cases(random: Random) -> Sequence[Case]:
    draw = torch.Generator().manual_seed(random.randrange(2**32))
    cases = []
    for _ in range(6):
        n, c, h, w = (random.randint(2, 5) for _ in range(4))
        tensors = torch.randn(n, c, h, w, generator=draw), torch.randn(c, generator=draw)
        cases.append(Guarded(tensors, forbidden="prelu"))
    return cases


def _source_cases(random: Random) -> Sequence[Case]:
    fixed = [(0, 4, 8), (7, 4, 8), (3, 6, 12), (2, 5, 5), (1, 8, 4)]
    drawn = []
    for _ in range(20):
        output = random.randint(3, 40)
        drawn.append((random.randrange(output), random.randint(2, 40), output))
    return [Case(numbers) for numbers in fixed + drawn]


def _same_place(given: Any, expected: float) -> bool:
    """In pixels: torch's float32 has fewer digits than the right number."""
    return near(given, expected, absolute=1e-5)


def _close(given: object, expected: Tensor) -> bool:
    return isinstance(given, Tensor) and given.shape == expected.shape and torch.allclose(given, expected, rtol=1e-5)


EXERCISES = (
    Exercise(
        key="32.fixed_window",
        task="(7, 3) gives kernel 3 and stride 2; (10, 4) gives None.",
        reference=fixed_window,
        cases=_pool_cases,
        agree=same_values,
        hints=(
            "Window i starts at floor(i * size / output). When do these starts lie evenly?",
            "Only the remainder of size / output matters, and two remainders are good.",
            "`None` unless `size % output` is 0 or 1 and `size >= output`; otherwise the formula of the post.",
        ),
        mistakes=(
            Mistake(
                "formula everywhere",
                "this is the formula for every pair. From 10 cells to 4 the shape is right and the numbers are not: "
                "the adaptive windows start at 0, 2, 5 and 7, and no stride does that.",
                "the post of this notebook, 2021, gives the formula without a condition",
                answers=(_formula,),
            ),
            Mistake(
                "divisible only",
                "this refuses whatever does not divide. A remainder of 1 is exact too: 7 to 3 is windows of 3, 2 "
                "apart.",
                "pytorch/pytorch pull request 9711, a comment of 2019, promises equality for divisible sizes only",
                answers=(_if_divisible,),
            ),
        ),
    ),
    Exercise(
        key="32.prelu_by_relu",
        task="relu(x) for what is positive, slope * x for what is not, channel by channel.",
        reference=prelu_by_relu,
        cases=_prelu_cases,
        agree=_close,
        hints=(
            "`torch.relu(-x)` is -x where x is negative, and 0 elsewhere.",
            "So slope * x is minus slope times that. The slopes need the shape (C, 1, 1).",
            "`torch.relu(x) - slopes.view(-1, 1, 1) * torch.relu(-x)`",
        ),
        mistakes=(
            Mistake(
                "sign",
                "the negative side came out with the other sign: relu(-x) is -x there, so its product is subtracted.",
                "PKUZHOU/MTCNN_FaceDetection_TensorRT issue 8, 2019, where the sign hides in the weight file",
                answers=(lambda x, slopes: torch.relu(x) + slopes.view(-1, 1, 1) * torch.relu(-x),),
            ),
            Mistake(
                "one slope for all",
                "here every channel has the same slope: that is a LeakyReLU. PReLU learns one a channel.",
                "lewes6369/tensorRTWrapper issue 4, 2019, puts a LeakyReLU in its place",
                answers=(
                    lambda x, slopes: F.leaky_relu(x, float(slopes[0])),
                    lambda x, slopes: F.leaky_relu(x),
                ),
            ),
            Mistake(
                "asks for the layer",
                "this is torch's own PReLU, the layer that is to be replaced. Use `torch.relu` and arithmetic.",
                answers=(F.prelu,),
            ),
        ),
    ),
    Exercise(
        key="32.source",
        task="Pixel 0 of 8, made of 4, lies at -0.25: its middle is a quarter pixel before the first middle.",
        reference=source,
        cases=_source_cases,
        agree=_same_place,
        hints=(
            "A pixel is an area: the middle of pixel i lies at i + 0.5.",
            "Scale the middle by size / output, then go back from middles to indices.",
            "`(i + 0.5) * size / output - 0.5`",
        ),
        mistakes=(
            Mistake(
                "corner to corner",
                "here the index is scaled, so pixel 0 lands on pixel 0 and the picture moves up and left. It is what "
                "operator set 9 says, and it is off by half a pixel.",
                "pytorch/pytorch issue 22906, 2019, exports bilinear upsampling and gets other numbers",
                answers=(lambda i, size, output: i * size / output,),
            ),
            Mistake(
                "aligned corners",
                "here the first pixel is on the first and the last on the last: that is align_corners=True.",
                "pytorch/pytorch issue 15120, 2018, finds Caffe2 doing so where PyTorch does not",
                answers=(lambda i, size, output: i * (size - 1) / (output - 1),),
            ),
        ),
    ),
)
