"""Exercises of notebook 28: compare bits, hand a seed to NumPy, and add in an order of your own."""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from course.learn.exercise import Case, Exercise, Mistake


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


def _bit_cases(random: Random) -> Sequence[Case]:
    nan, zero = torch.tensor([1.0, float("nan")]), torch.zeros(2)
    cases = [Case((nan, nan.clone())), Case((zero, -zero)), Case((zero, zero.clone())), Case((zero, zero + 1e-45))]
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    for _ in range(12):
        a = torch.randn(random.randint(1, 60), generator=generator)
        b = a.clone()
        if random.random() < 0.5:
            k = random.randrange(len(a))
            b[k] = torch.nextafter(b[k], torch.tensor(9.0))
        cases.append(Case((a, b)))
    return cases


def _seed_cases(random: Random) -> Sequence[Case]:
    fixed = [0, 2**32 - 1, 2**32, 1648085986, 2**63 + 5]
    return [Case((seed,)) for seed in [*fixed, *(random.randrange(2**64) for _ in range(12))]]


def _sum_cases(random: Random) -> Sequence[Case]:
    cases = [Case(([(1, 1e16), (2, -1e16), (0, 1.0)],)), Case(([(0, 0.1), (1, 0.2), (2, 0.3)],)), Case(([],))]
    for _ in range(16):
        parts = [(rank, round(random.uniform(-1, 1), 3)) for rank in range(random.randint(3, 8))]
        random.shuffle(parts)
        cases.append(Case((parts,)))
    return cases


EXERCISES = (
    Exercise(
        key="28.same",
        task="Whether two float32 tensors of one shape hold the same bits: a NaN is itself, and 0.0 is not -0.0.",
        reference=same,
        cases=_bit_cases,
        agree=lambda given, expected: isinstance(given, bool) and given == expected,
        hints=(
            "Numbers have an opinion about NaN; bits have none.",
            "`x.view(dtype)` looks at the same memory as another type of the same width.",
            "`torch.equal(a.view(torch.int32), b.view(torch.int32))`",
        ),
        mistakes=(
            Mistake(
                "numbers instead of bits",
                "you compared numbers. A NaN is unequal to itself, so a run that repeats to the bit looks as if it "
                "did not; and 0.0 == -0.0, though 1 / x tells them apart.",
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
        hints=(
            "Workers of one loader have seeds that follow each other. Which end of the number tells them apart?",
            "Keep the low 32 bits.",
            "`return torch_seed % 2**32`",
        ),
        mistakes=(
            Mistake(
                "the wrong end",
                "you kept the high bits and took one away: most seeds become -1, which NumPy refuses, and the rest "
                "are the same in every worker. `-` binds after `//` and `**`.",
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
                "you added in the order of arrival, as atomic additions on a GPU do. In a different order the sum may "
                "have a different last bit.",
                "pytorch/pytorch pull request 12217, 2018: index_add_, scatter_add_ and bincount on CUDA",
                answers=(_in_order_of_arrival,),
            ),
        ),
    ),
)
