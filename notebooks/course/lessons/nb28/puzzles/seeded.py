"""Each rank calls `seeded(build, seed, rank)`. Return the net that `build()` makes, with the same weights on all ranks.
Whatever is drawn afterwards, on the CPU, on the GPU, by NumPy or by Python, is to differ between the ranks, and to
repeat in the next run. DDP does not help.
"""

import random as python
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
import torch
from torch import nn

from course.kit.learn.exercise import TODO, Case
from course.kit.learn.puzzle import also, wrong

hints = (
    "Two things are drawn: the weights, which have to be equal on all ranks, and all that comes later. Seed twice.",
    "`torch.manual_seed` seeds the CPU and every GPU. NumPy has `numpy.random.seed`, and Python has `random.seed`.",
    "`torch.manual_seed(seed)`, then `net = build()`, then all three with `seed + 1 + rank`.",
)


def seeded(build: Callable[[], nn.Module], seed: int, rank: int) -> nn.Module:
    torch.manual_seed(seed)
    net = build()
    torch.manual_seed(seed + 1 + rank)
    np.random.seed(seed + 1 + rank)
    python.seed(seed + 1 + rank)
    return net


class Ranks(Case):
    """Rank 0, rank 1, and rank 0 in a second run, one after the other. The result is what is equal among them."""

    def call(self, function: Callable[..., Any]) -> Any:
        runs = []
        for rank in (0, 1, 0):
            torch.manual_seed(python.randrange(2**31))  # whatever a process has drawn before
            net = function(*self.args, rank)
            if net is TODO:
                return TODO
            drawn = {
                "CPU": torch.rand(4).tolist(),
                "GPU": torch.rand(4, device="cuda").tolist(),
                "NumPy": np.random.rand(4).tolist(),
                "Python": [python.random() for _ in range(4)],
            }
            runs.append(([p.tolist() for p in net.parameters()], drawn))
        (weights, first), (others, second), (again, third) = runs
        return {
            "weights equal on both ranks": weights == others,
            "weights repeat": weights == again,
            "differ between the ranks": [name for name in first if first[name] != second[name]],
            "repeat": [name for name in first if first[name] == third[name]],
        }

    def show(self, name: str) -> str:
        return f"{name}(build, {self.args[1]}, rank) on ranks 0 and 1, and once more on rank 0"


def cases(random: Random) -> Sequence[Case]:
    def build() -> nn.Module:
        return nn.Linear(3, 2)

    return [Ranks((build, seed)) for seed in (404, 0, random.randrange(2**20))]


@wrong
def one_seed(build: Callable[[], nn.Module], seed: int, rank: int) -> nn.Module:
    """this is what a function gives that seeds all ranks alike. The weights are equal, and so are all masks and all
    augmentations.
    """
    torch.manual_seed(seed)
    np.random.seed(seed)
    python.seed(seed)
    return build()


@wrong
def the_rank_before_the_net(build: Callable[[], nn.Module], seed: int, rank: int) -> nn.Module:
    """this is what a function gives that adds the rank to the seed before the net is made. Each rank has other weights
    then. DDP would repair that, because it sends those of rank 0; nothing else does.
    """
    torch.manual_seed(seed + rank)
    np.random.seed(seed + rank)
    python.seed(seed + rank)
    return build()


@wrong
def torch_alone(build: Callable[[], nn.Module], seed: int, rank: int) -> nn.Module:
    """this is what a function gives that leaves out the generators of NumPy and Python. They start anywhere, and the
    run does not repeat.
    """
    torch.manual_seed(seed)
    net = build()
    torch.manual_seed(seed + 1 + rank)
    return net


@wrong
def the_CPU_alone(build: Callable[[], nn.Module], seed: int, rank: int) -> nn.Module:
    """this is what a function gives that moves on the generator of the CPU alone. The GPUs of the ranks still have the
    seed that all of them began with, so their masks are equal.
    """
    torch.manual_seed(seed)
    net = build()
    torch.default_generator.manual_seed(seed + 1 + rank)
    np.random.seed(seed + 1 + rank)
    python.seed(seed + 1 + rank)
    return net


@wrong
def NumPy_and_Python_alike(build: Callable[[], nn.Module], seed: int, rank: int) -> nn.Module:
    """this is what a function gives that seeds NumPy and Python alike on all ranks. Augmentations that draw from them
    are the same on every rank.
    """
    torch.manual_seed(seed)
    net = build()
    torch.manual_seed(seed + 1 + rank)
    np.random.seed(seed)
    python.seed(seed)
    return net


@also(NumPy_and_Python_alike)
def _(build: Callable[[], nn.Module], seed: int, rank: int) -> nn.Module:
    np.random.seed(seed)
    python.seed(seed)
    torch.manual_seed(seed)
    net = build()
    torch.manual_seed(1000 * seed + 17 * rank + 5)
    return net
