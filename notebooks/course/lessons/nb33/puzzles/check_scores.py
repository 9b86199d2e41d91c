"""A test for `make()`, which gives a new net on the CPU that takes rows of 16 numbers. It passes where the net gives on
two GPUs what it gives on one, and raises where it does not, as where a tensor stays on the GPU of the first call.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from course.kit.learn.exercise import Case, Program, Trial
from course.kit.learn.puzzle import also, wrong

Make = Callable[[], nn.Module]

hints = (
    "When does the net make its tensor, and on which GPU is it when the second replica adds it?",
    "Call the bare net first, then the wrapped one, with at least two rows, and compare.",
    "`torch.testing.assert_close(net(x), nn.DataParallel(net, [0, 1])(x))`, with `net = make().cuda()`",
)


class _Scores(nn.Module):
    def __init__(self, how: str, top: float) -> None:
        super().__init__()
        self.layer, self.how = nn.Linear(16, 3), how
        self.prior: Any = None
        self.kept: Any
        self.register_buffer("kept", torch.linspace(0, top, 3))
        self.top = top

    def forward(self, x: Tensor) -> Any:
        if self.how == "a buffer":
            return self.layer(x) + self.kept
        if self.how == "made in each call":
            return self.layer(x) + torch.linspace(0, self.top, 3, device=x.device)
        if self.how == "made again on a new device":
            if self.prior is None or self.prior.device != x.device:
                self.prior = torch.linspace(0, self.top, 3, device=x.device)
            return self.layer(x) + self.prior
        if self.prior is None:
            self.prior = torch.linspace(0, self.top, 3, device=x.device)
        return (self.layer(x) + self.prior) if self.how == "made in the first call" else self.layer(x) * self.prior


HOWS = (
    "a buffer",
    "made in each call",
    "made again on a new device",
    "made in the first call",
    "a factor made in the first call",
)


def cases(random: Random) -> Sequence[Case]:
    top = random.randint(1, 999) / 100
    return [Trial((Program(f"{how}, 0 to {top}", lambda how=how: _Scores(how, top)),)) for how in HOWS]


def check_scores(make: Make) -> None:
    net, x = make().cuda(), torch.randn(9, 16).cuda()
    torch.testing.assert_close(net(x), nn.DataParallel(net, [0, 1])(x))


@wrong
def a_test_that_passes_on_the_bug(make: Make) -> None:
    """this is how a test ends that no net fails. It calls the wrapped net first, whose replicas make a tensor each and
    are thrown away; or it has one row, which goes to one GPU; or it compares no numbers of two GPUs; or
    it catches the error.
    """
    net, x = make().cuda(), torch.randn(9, 16).cuda()
    wrapped = nn.DataParallel(net, [0, 1])(x)
    torch.testing.assert_close(wrapped, net(x))


@also(a_test_that_passes_on_the_bug)
def one_row(make: Make) -> None:
    net, x = make().cuda(), torch.randn(1, 16).cuda()
    torch.testing.assert_close(net(x), nn.DataParallel(net, [0, 1])(x))


@wrong
def bit_for_bit_against_a_new_net(make: Make) -> None:
    """this is how a test ends that compares two nets. `make()` draws new weights in each call, so right nets differ as
    well. Compare one net with itself.
    """
    x = torch.randn(9, 16).cuda()
    one, other = make().cuda(), make().cuda()
    torch.testing.assert_close(one(x), nn.DataParallel(other, [0, 1])(x))
