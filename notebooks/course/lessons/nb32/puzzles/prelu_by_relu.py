"""relu(x) for what is positive, slope * x for what is not, channel by channel."""

from collections.abc import Sequence
from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from course.kit.learn.exercise import Case
from course.kit.learn.guarded import Guarded
from course.kit.learn.puzzle import also, wrong

hints = (
    "`torch.relu(-x)` is -x where x is negative, and 0 elsewhere.",
    "So slope * x is minus slope times that. The slopes need the shape (C, 1, 1).",
    "`torch.relu(x) - slopes.view(-1, 1, 1) * torch.relu(-x)`",
)


def prelu_by_relu(x: Tensor, slopes: Tensor) -> Tensor:
    """PReLU of x (N, C, H, W), one slope a channel, by `torch.relu` alone."""
    return torch.relu(x) - slopes.view(-1, 1, 1) * torch.relu(-x)


def cases(random: Random) -> Sequence[Case]:
    draw = torch.Generator().manual_seed(random.randrange(2**32))
    cases = []
    for _ in range(6):
        n, c, h, w = (random.randint(2, 5) for _ in range(4))
        tensors = torch.randn(n, c, h, w, generator=draw), torch.randn(c, generator=draw)
        cases.append(Guarded(tensors, forbidden="prelu"))
    return cases


def _close(given: object, expected: Tensor) -> bool:
    return (
        isinstance(given, Tensor)
        and given.shape == expected.shape
        and torch.allclose(given, expected, rtol=1e-5, equal_nan=True)
    )


agree = _close


@wrong
def sign(x, slopes):
    """the negative side came out with the other sign: relu(-x) is -x there, so its product is subtracted.

    Source: PKUZHOU/MTCNN_FaceDetection_TensorRT issue 8, 2019, where the sign hides in the weight file
    """
    return torch.relu(x) + slopes.view(-1, 1, 1) * torch.relu(-x)


@wrong
def one_slope_for_all(x, slopes):
    """here every channel has the same slope: that is a LeakyReLU. PReLU learns one a channel.

    Source: lewes6369/tensorRTWrapper issue 4, 2019, puts a LeakyReLU in its place
    """
    return F.leaky_relu(x, float(slopes[0]))


@also(one_slope_for_all)
def _(x, slopes):
    return F.leaky_relu(x)


@wrong
def asks_for_the_layer(*given):
    """this is torch's own PReLU, the layer that is to be replaced. Use `torch.relu` and arithmetic."""
    return F.prelu(*given)
