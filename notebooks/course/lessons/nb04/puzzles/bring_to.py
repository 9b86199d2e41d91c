"""The array as a tensor of the same dtype, on the device, a GPU or the CPU, where `layer`, an `nn.Linear` of your model
or of a replica, has its weight.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong

hints = (
    "Ask something that is on the right device for sure. Not the thread, and not a number.",
    "You know what an `nn.Linear` keeps its numbers in, by name: a replica has it under the same name.",
    "`torch.from_numpy(array).to(layer.weight.device)`",
)


class _Layer(nn.Linear):
    """A layer that says whose it is where a call is shown."""

    whose = "your model"

    def __repr__(self) -> str:
        return f"<an nn.Linear of {self.whose}, on {self.weight.device}>"


def _replicas(layer: nn.Module) -> list[nn.Module]:
    replicas = nn.parallel.replicate(layer, [0, 1])
    for replica in replicas:
        vars(replica)["whose"] = "a replica"
    return replicas


def bring_to(layer: nn.Linear, array: np.ndarray) -> Tensor:
    return torch.from_numpy(array).to(layer.weight.device)


def _first_parameter_or(otherwise: Callable[[], torch.device]) -> Callable[[nn.Linear, np.ndarray], Tensor]:
    def answer(layer: nn.Linear, array: np.ndarray) -> Tensor:
        weight = next(layer.parameters(), None)
        return torch.from_numpy(array).to(otherwise() if weight is None else weight.device)

    return answer


@dataclass(frozen=True)
class _Entered(Case):
    """A call inside `with torch.cuda.device(current)`, so the current device says nothing about the layer."""

    current: int = 0

    def call(self, function: Callable[..., Any]) -> Any:
        with torch.cuda.device(self.current):
            return super().call(function)

    def show(self, name: str) -> str:
        return f"with cuda:{self.current} current, {super().show(name)}"


def cases(random: Random) -> Sequence[Case]:
    """Layers on the CPU and on a GPU, and replicas on two GPUs, which list no parameters."""
    cases = []
    for width in (2, 3, *(random.randint(4, 99) for _ in range(5))):
        array = np.array([[random.random() for _ in range(width)] for _ in range(4)], dtype=np.float32)
        layer = _Layer(width, 1, bias=width % 2 == 0).cuda()  # noqa: FL001 any GPU
        for each in (layer, *_replicas(layer), _Layer(width, 1)):
            cases += [_Entered((each, array), current=current) for current in (0, 1)]
    return [*cases, _Entered((layer, np.arange(4)))]  # labels


def _same_place(given: Any, expected: Tensor) -> bool:
    return (given.device, given.dtype) == (expected.device, expected.dtype) and torch.equal(given, expected)


agree = _same_place


@wrong
def the_first_of_parameters(layer: nn.Linear, array: np.ndarray) -> Tensor:
    """this is what the first of `layer.parameters()` leads to. This layer belongs to a replica, and a replica lists no
    parameters. Ask its weight by name.

    Source: pytorch/pytorch issue 40457, 2020
    """
    return torch.from_numpy(array).to(next(layer.parameters()).device)


@wrong
def the_CPU_otherwise(*given):
    """this is what a function gives that falls back to the CPU where a layer lists no parameters. No replica lists any,
    so its array stays on the CPU.

    Source: huggingface/sentence-transformers pull request 2614, 2024, does so for models without weights
    """
    return _first_parameter_or(lambda: torch.device("cpu"))(*given)


@wrong
def the_current_device(layer: nn.Linear, array: np.ndarray) -> Tensor:
    """this is what a function gives that takes the current device. It belongs to the thread that asks, not to the
    layer.

    Source: facebookresearch/fairscale pull request 606, 2021
    """
    return torch.from_numpy(array).cuda()  # noqa: FL001 the mistake itself


also(the_current_device)(_first_parameter_or(lambda: torch.device("cuda", torch.cuda.current_device())))


@wrong
def cuda_0_for_all(layer: nn.Linear, array: np.ndarray) -> Tensor:
    """this is what a function gives that names cuda:0. The replica on cuda:1 then gets its array on the wrong GPU.

    Source: csuhan/s2anet issue 136, 2022
    """
    return torch.from_numpy(array).to("cuda:0")  # noqa: FL004 the mistake itself


@wrong
def with_the_layer_s_dtype(layer: nn.Linear, array: np.ndarray) -> Tensor:
    """this is what `.to(tensor)` gives, or `new_tensor`: the device of that tensor and its dtype as well. Labels become
    floats. Name the device alone.
    """
    return torch.from_numpy(array).to(layer.weight)
