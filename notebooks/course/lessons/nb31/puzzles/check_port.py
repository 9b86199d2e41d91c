"""A test of `port`, a PyTorch module in whatever mode, beside `original`, a function that computes what the first
framework does in evaluation, for `x` (rows, 6). It raises an AssertionError unless both compute the same.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from course.kit.learn.exercise import Case, Trial
from course.kit.learn.puzzle import also, wrong

hints = (
    "Outputs are the only proof. Which mode does a net have to be in, before its outputs are compared?",
    "A wrong weight shows only where inputs reach it: draw them, several rows, positive and negative.",
    "`torch.testing.assert_close(port.eval()(x), original(x))` with `x = torch.randn(8, 6)`.",
)


def check_port(original: Callable[[Tensor], Tensor], port: nn.Module) -> None:
    torch.manual_seed(0)
    x = torch.randn(16, 6)
    torch.testing.assert_close(port.eval()(x), original(x), rtol=1e-4, atol=1e-4)


class Port(nn.Sequential):
    """Layers such as a port has, with numbers of their own; `words` say what is wrong with it."""

    def __init__(self, words: str, seed: int) -> None:
        super().__init__(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.PReLU(6), nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 4))
        self.words = words
        torch.manual_seed(seed)
        with torch.no_grad():
            for name, tensor in self.state_dict().items():
                if tensor.is_floating_point():
                    tensor.copy_(0.5 + torch.rand(tensor.shape) if "running_var" in name else torch.randn(tensor.shape))

    def __repr__(self) -> str:
        return f"<{self.words}>"


def _as_it_is(port: Any) -> None:
    port.eval()


def _turned(port: Any) -> None:
    port[0].weight.copy_(port[0].weight.T.clone())


def _exchanged(port: Any) -> None:
    mean, variance = port[1].running_mean.clone(), port[1].running_var.clone()
    port[1].running_mean.copy_(variance)
    port[1].running_var.copy_(mean.abs() + 0.1)


def _slopes(port: Any) -> None:
    port[2].weight.copy_(port[2].weight.flip(0))


def _halves(port: Any) -> None:
    port[3].weight.copy_(port[3].weight.roll(3, 1))


def _bias(port: Any) -> None:
    port[5].bias.zero_()


def _off(port: Any) -> None:
    port[5].bias.add_(0.005)


CHANGES: Sequence[tuple[str, Callable[[Any], None]]] = (
    ("a right port", _as_it_is),
    ("a right port that is in training mode", lambda port: None),
    ("a port with one square weight not turned", _turned),
    ("a port with mean and variance exchanged", _exchanged),
    ("a port with the slopes of PReLU in a different order", _slopes),
    ("a port with one layer's ranks exchanged", _halves),
    ("a port without the last bias", _bias),
    ("a port whose last bias is off by 0.005", _off),
)


@dataclass(frozen=True)
class Original:
    """What the first framework computes: rounded differently, because it computes with more digits."""

    net: nn.Module

    def __call__(self, x: Any) -> Tensor:
        with torch.no_grad():
            return copy.deepcopy(self.net).double().eval()(torch.as_tensor(x).double()).float()

    def __repr__(self) -> str:
        return "<the original>"


@dataclass(frozen=True)
class _OwnPort(Trial):
    """Each test gets a port of its own: what one test has done to it is not handed to the next."""

    def call(self, function: Callable[..., Any]) -> Any:
        return Trial(copy.deepcopy(self.args)).call(function)


def cases(random: Random) -> Sequence[Case]:
    found: list[Case] = []
    for words, change in [*CHANGES, *random.sample(CHANGES, len(CHANGES))]:
        seed = random.randrange(2**32)
        port = Port(words, seed)
        with torch.no_grad():
            change(port)
        found.append(_OwnPort((Original(Port("the original", seed)), port)))
    return found


@wrong
def names_and_shapes(original: Any, port: nn.Module) -> None:
    """this is how a test ends that no port fails, such as one that compares names or shapes: all of these ports have
    the right ones. Outputs are the proof.
    """
    assert port.eval()(torch.zeros(3, 6)).shape == original(torch.zeros(3, 6)).shape


@wrong
def as_it_comes(original: Any, port: nn.Module) -> None:
    """this is how a test ends that leaves the port in the mode in which it comes. A right one that is in training mode
    normalises by the rows of the batch, and fails. Call `eval()`.
    """
    torch.manual_seed(0)
    x = torch.randn(16, 6)
    torch.testing.assert_close(port(x), original(x), rtol=1e-4, atol=1e-4)


@wrong
def zeros(original: Any, port: nn.Module) -> None:
    """this is how a test ends whose input is 0 everywhere. Then the first weight is multiplied by nothing, and whether
    it was turned cannot be seen. Draw the input.
    """
    x = torch.zeros(16, 6)
    torch.testing.assert_close(port.eval()(x), original(x), rtol=1e-4, atol=1e-4)


@wrong
def bit_for_bit(original: Any, port: nn.Module) -> None:
    """this is how a test ends that compares bit for bit. Two frameworks add in different orders and round differently,
    so a right port fails. Leave room for the last digits.
    """
    torch.manual_seed(0)
    x = torch.randn(16, 6)
    assert torch.equal(port.eval()(x), original(x))


@wrong
def too_much_room(original: Any, port: nn.Module) -> None:
    """this is how a test ends that leaves too much room: an output that is off by 0.005 passes. Rounding changes the
    last of seven digits, so 0.0001 is enough.
    """
    torch.manual_seed(0)
    x = torch.randn(16, 6)
    torch.testing.assert_close(port.eval()(x), original(x), rtol=0, atol=1e-2)


@wrong
def the_largest_alone(original: Any, port: nn.Module) -> None:
    """this is how a test ends that compares the class with the largest output. A port that is wrong by a little finds
    the same class for most inputs, and a forgotten bias can be small. Compare the numbers.
    """
    torch.manual_seed(0)
    x = torch.randn(1, 6)
    assert port.eval()(x).argmax() == original(x).argmax()


@also(the_largest_alone)
def two_rows(original: Any, port: nn.Module) -> None:
    torch.manual_seed(1)
    x = torch.randn(2, 6)
    assert torch.equal(port.eval()(x).argmax(1), original(x).argmax(1))
