"""Exercises of notebook 28: compare bits, hand a seed to NumPy, and add in an order of your own."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from torch import Tensor

from course.kit.learn.agree import plain, same_values
from course.kit.learn.exercise import TODO, Case, Exercise, Mistake


def same(a: Tensor, b: Tensor) -> bool:
    """Whether two float32 tensors of one shape hold the same bits."""
    return torch.equal(a.view(torch.int32), b.view(torch.int32))


def numpy_seed(torch_seed: int) -> int:
    """A seed that NumPy takes, 0 .. 2**32 - 1, from torch's of 64 bits: neighbours stay different."""
    return torch_seed % 2**32


def ordered_sum(arrived: Sequence[tuple[int, float]]) -> float:
    """The values of (rank, value) pairs added one by one in the order of their ranks, from 0.0 on."""
    total = 0.0
    for _, value in sorted(arrived):
        total += value
    return total


def _in_order_of_arrival(arrived: Sequence[tuple[int, float]]) -> float:
    total = 0.0
    for _, value in arrived:
        total += value
    return total


def _compensated(arrived: Sequence[tuple[int, float]]) -> float:
    """As `sum` adds floats since Python 3.12: by Neumaier's method, which keeps what rounding takes away."""
    total = lost = 0.0
    for _, value in sorted(arrived):
        new = total + value
        lost += (total - new) + value if abs(total) >= abs(value) else (value - new) + total
        total = new
    return total + lost


def _bit_cases(random: Random) -> Sequence[Case]:
    nan, zero = torch.tensor([1.0, float("nan")]), torch.zeros(2)
    other_nan = (nan.view(torch.int32) + torch.tensor([0, 1], dtype=torch.int32)).view(torch.float32)
    pairs = [(nan, nan.clone()), (nan, other_nan), (zero, -zero), (zero, zero.clone()), (zero, zero + 1e-45)]
    cases = [Case(pair) for pair in pairs]
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    for _ in range(12):
        a = torch.randn(random.randint(1, 60), generator=generator)
        b = a.clone()
        if random.random() < 0.5:
            k = random.randrange(len(a))
            b[k] = torch.nextafter(b[k], torch.tensor(9.0))
        cases.append(Case((a, b)))
    return cases


@dataclass(frozen=True)
class _Workers(Case):
    """The seeds of eight workers, which follow each other, and that of the first one once more."""

    def call(self, function: Callable[..., Any]) -> Any:
        (first,) = self.args
        seeds = [function(first + k) for k in (*range(8), 0)]
        return seeds[-1] if seeds[-1] is TODO else plain(seeds)

    def show(self, name: str) -> str:
        return f"{name} of {self.args[0]} and the seven numbers after it, and of the first again,"


def _seed_cases(random: Random) -> Sequence[Case]:
    fixed = [0, 2**32 - 4, 2**32, 1648085986, 2**63 + 5]
    return [_Workers((seed,)) for seed in [*fixed, *(random.randrange(2**64 - 8) for _ in range(12))]]


def _will_do(seeds: Any) -> bool:
    """Whether NumPy takes these seeds, no two workers have the same, and the first has the same one again."""
    whole = all(type(seed) is int and 0 <= seed < 2**32 for seed in seeds)
    return whole and len(set(seeds)) == 8 and seeds[0] == seeds[-1]


def _agree_on_seeds(given: Any, expected: Any) -> bool:
    return same_values(given, expected) or (_will_do(given) and _will_do(expected))


def _sum_cases(random: Random) -> Sequence[Case]:
    cases = [Case(([(1, 1e16), (2, -1e16), (0, 1.0)],)), Case(([(0, 0.1), (1, 0.2), (2, 0.3)],)), Case(([],))]
    for _ in range(16):
        parts = [(rank, round(random.uniform(-1, 1), 3)) for rank in range(random.choice([3, 5, 8, 300]))]
        random.shuffle(parts)
        cases.append(Case((parts,)))
    return cases


EXERCISES = (
    Exercise(
        key="28.same",
        task="Whether two float32 tensors of one shape hold the same bits: a NaN is itself, and 0.0 is not -0.0.",
        reference=same,
        cases=_bit_cases,
        agree=same_values,
        hints=(
            "Compared as numbers, a NaN is unequal to itself; its bits are equal.",
            "`x.view(dtype)` looks at the same memory as another type of the same width.",
            "`torch.equal(a.view(torch.int32), b.view(torch.int32))`",
        ),
        mistakes=(
            Mistake(
                "numbers instead of bits",
                "this is what a comparison of numbers gives. A NaN is unequal to itself, so a run that repeats to the "
                "bit looks as if it did not; and 0.0 == -0.0, though 1 / x tells them apart.",
                "pytorch/pytorch issue 137337, 2024: `torch.equal(x, x)` is False with a NaN in x",
                answers=(torch.equal,),
            ),
        ),
    ),
    Exercise(
        key="28.numpy_seed",
        task="A seed for NumPy (0 .. 2**32 - 1) from a worker's torch.initial_seed(); neighbours stay different.",
        reference=numpy_seed,
        cases=_seed_cases,
        agree=_agree_on_seeds,
        hints=(
            "Workers of one loader have seeds that follow each other. Which end of the number tells them apart?",
            "Keep the low 32 bits.",
            "`return torch_seed % 2**32`",
        ),
        mistakes=(
            Mistake(
                "the wrong end",
                "these are the high bits, less one: small seeds become -1, which NumPy refuses, and the others are "
                "the same in every worker. `-` binds after `//` and `**`.",
                "LZGMatrix/BOP19_CDPN_2019ICCV issue 8, 2022: `torch_seed // 2**32 - 1`",
                answers=(lambda seed: seed // 2**32 - 1,),
            ),
        ),
    ),
    Exercise(
        key="28.ordered_sum",
        task="Add the values of (rank, value) pairs in the order of their ranks, whatever order they arrived in.",
        reference=ordered_sum,
        cases=_sum_cases,
        hints=(
            "(0.1 + 0.2) + 0.3 and 0.1 + (0.2 + 0.3) differ in the last bit. Try it.",
            "Sort before you add.",
            "`for _, value in sorted(arrived): total += value`",
        ),
        mistakes=(
            Mistake(
                "in order of arrival",
                "this is the sum in the order of arrival, as atomic additions on a GPU make it. In a different order "
                "the sum may have a different last bit.",
                "pytorch/pytorch pull request 12217, 2018: index_add_, scatter_add_ and bincount on CUDA",
                answers=(_in_order_of_arrival,),
            ),
            Mistake(
                "compensated",
                "this sum was corrected for its rounding, as `math.fsum` does and, since Python 3.12, `sum`. torch "
                "adds plainly, and so does `total += value`.",
                "python/cpython issue 100425, 2022: sum() of floats more accurate",
                answers=(_compensated, lambda arrived: math.fsum(value for _, value in sorted(arrived))),
            ),
        ),
    ),
)
