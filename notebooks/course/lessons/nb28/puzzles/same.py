"""Whether two float32 tensors of one shape hold the same bits: a NaN is itself, and 0.0 is not -0.0."""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from course.kit.learn.agree import same_values
from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong

hints = (
    "Compared as numbers, a NaN is unequal to itself; its bits are equal.",
    "`x.view(dtype)` looks at the same memory as another type of the same width.",
    "`torch.equal(a.view(torch.int32), b.view(torch.int32))`",
)


def same(a: Tensor, b: Tensor) -> bool:
    """Whether two float32 tensors of one shape hold the same bits."""
    return torch.equal(a.view(torch.int32), b.view(torch.int32))


def cases(random: Random) -> Sequence[Case]:
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


agree = same_values


@wrong
def numbers_instead_of_bits(*given):
    """this is what a comparison of numbers gives. A NaN is unequal to itself, so a run that repeats to the bit looks as
    if it did not; and 0.0 == -0.0, though 1 / x tells them apart.

    Source: pytorch/pytorch issue 137337, 2024: `torch.equal(x, x)` is False with a NaN in x
    """
    return torch.equal(*given)
