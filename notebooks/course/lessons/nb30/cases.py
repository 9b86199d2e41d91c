"""Nets and files for the exercises of notebook 30."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from course.kit.learn.exercise import TODO, Case


def make_net(seed: int, width: int = 6) -> nn.Module:
    """A net with buffers; a name begins with letters of `module`, and one ends in it. Two seeds differ everywhere."""
    torch.manual_seed(seed)
    layers = [("embed", nn.Linear(4, width)), ("submodule", nn.BatchNorm1d(width)), ("head", nn.Linear(width, 3))]
    net = nn.Sequential(OrderedDict(layers))
    with torch.no_grad():
        for tensor in net.state_dict().values():
            tensor.copy_(torch.randint(1, 1000, tensor.shape) / 8 if tensor.is_floating_point() else 5 + seed)
    return net


def wrapped(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"module.{name}": tensor for name, tensor in weights.items()}


@dataclass(frozen=True)
class Loaded:
    """How a load ended: whether it raised, and what the net holds."""

    raised: bool
    state: dict[str, Tensor]

    def __repr__(self) -> str:
        total = sum(float(tensor.double().sum()) for tensor in self.state.values())
        return f"{'an error' if self.raised else 'no error'}, and a net whose numbers add up to {total:.3f}"


@dataclass(frozen=True)
class Load(Case):
    """A call of `load(net, weights)` with a net and tensors of its own; the result is how it ended."""

    def call(self, function: Callable[..., Any]) -> Any:
        net, weights = self.args
        own = make_net(0, net.head.in_features)
        own.load_state_dict(net.state_dict())
        try:
            returned = function(own, {name: tensor.clone() for name, tensor in weights.items()})
        except NotImplementedError:  # a starter that is not filled in
            raise
        except Exception:
            return Loaded(True, own.state_dict())
        return TODO if returned is TODO else Loaded(False, own.state_dict())


def same_load(given: object, expected: Loaded) -> bool:
    return (
        isinstance(given, Loaded)
        and given.raised == expected.raised
        and given.state.keys() == expected.state.keys()
        and all(torch.equal(given.state[name], tensor) for name, tensor in expected.state.items())
    )
