"""True where every tensor of `found` agrees with its one of `wanted`: no entry is off by more than 1e-5 of the entry of
`wanted` that is largest in size. False where one is missing.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor

from course.kit.learn.agree import same_values
from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong

hints = (
    "Several devices add up in a different order, so the last bits differ.",
    "Each tensor has a scale of its own: measure the largest difference against its largest entry.",
    "`(mine - its).abs().max() <= 1e-5 * its.abs().max()`, for all pairs; make it a bool.",
)


def same_gradients(found: Sequence[Tensor], wanted: Sequence[Tensor]) -> bool:
    pairs = zip(found, wanted, strict=False)
    return len(found) == len(wanted) and all(
        mine.shape == its.shape and bool((mine - its).abs().max() <= 1e-5 * its.abs().max()) for mine, its in pairs
    )


def cases(random: Random) -> Sequence[Case]:
    """Equal, rounded in a different order, off by a part in a thousand, in twenty, and one of them twice as large."""
    generator = torch.Generator().manual_seed(random.randrange(2**31))
    cases = []
    for k in range(20):
        wanted = [torch.randn(random.randint(2, 9), 3, generator=generator), 1e-4 * torch.randn(5, generator=generator)]
        noise = [torch.randn(w.shape, generator=generator) * w.abs().max() for w in wanted]
        off = (0.0, 1e-6, 1e-6, 1e-3, 0.05)[k % 5]
        found = [w + off * n.clamp(-1, 1) for w, n in zip(wanted, noise, strict=True)]
        if k % 5 == 2:  # an entry that is 0 on one device and rounding on the other
            wanted[0][0, 0], found[0][0, 0] = 0.0, 1e-7
        if k == 4:
            found = [wanted[0], 2 * wanted[1]]
        if k == 5:  # rounding in proportion to every entry
            found = [w * (1 + 1e-6) for w in wanted]
        cases.append(Case((found, wanted)))
    missing = _Refused((cases[0].args[0][:1], cases[0].args[1]))
    return [*cases, *map(Case, _hidden_differences(generator)), missing]


class _Refused(Case):
    """A pair of lists of which one is too short: an error, as `zip(strict=True)` raises it, is as good as False."""

    def call(self, function: Callable[..., Any]) -> Any:
        try:
            return super().call(function)
        except ValueError:
            return False


def _hidden_differences(generator: torch.Generator) -> list[tuple[list[Tensor], list[Tensor]]]:
    """One entry of a thousand, a tensor small beside its neighbour, one sign only, equal norms; then two that agree."""
    large, tiny = torch.randn(1000, generator=generator), 1e-7 * torch.randn(5, generator=generator)
    largest = large.abs().max()
    one_off = large.clone()
    one_off[7] += 3e-5 * largest
    return [
        ([one_off, tiny], [large, tiny]),
        ([large, 1.05 * tiny], [large, tiny]),
        ([large - 1e-3 * largest, tiny], [large, tiny]),
        ([-large, tiny], [large, tiny]),
        ([large, torch.zeros(5)], [large, torch.zeros(5)]),
        ([-large.abs() - 0.7e-5 * largest * (large == large[7])], [-large.abs()]),
    ]


agree = same_values


@wrong
def bit_for_bit(found: Sequence[Tensor], wanted: Sequence[Tensor]) -> bool:
    """this is a comparison bit for bit. Parts of a batch are added up in a different order, on which sums of floats
    depend.

    Source: asked about in pytorch/pytorch issue 14007, 2018; a test in RL-Align/RL-Kernel pull request 199, 2026
    """
    return all(torch.equal(mine, its) for mine, its in zip(found, wanted, strict=True))


@wrong(recognise=lambda cases, given: _as_allclose(cases, given))
def allclose(found: Sequence[Tensor], wanted: Sequence[Tensor]) -> bool:
    """this is `torch.allclose`, which measures every entry against itself and allows 1e-8 besides, or what you say. One
    such number is too strict for large tensors or blind for small ones.
    """
    pairs = zip(found, wanted, strict=True)
    return all(mine.shape == its.shape and torch.allclose(mine, its) for mine, its in pairs)


def _as_allclose(cases: Sequence[Case], given: Sequence[object]) -> bool:
    """As it judges with some absolute tolerance, also where a missing tensor makes `zip` stop early."""
    tolerances = (1e-8, 1e-7, 1e-6, 1e-5)
    pairs = [case.args for case in cases if len(case.args[0]) == len(case.args[1])]
    kept = [one for case, one in zip(cases, given, strict=True) if len(case.args[0]) == len(case.args[1])]
    return any(
        kept == [all(torch.allclose(a, b, atol=atol) for a, b in zip(*pair, strict=True)) for pair in pairs]
        for atol in tolerances
    )


@wrong
def a_tenth_is_close_enough(found: Sequence[Tensor], wanted: Sequence[Tensor]) -> bool:
    """a difference of a tenth passes here. A row that is counted twice in a batch of twenty stays below that.

    Source: rtol=1e-01 in PaddlePaddle/Paddle pull request 21563, 2019
    """
    pairs = zip(found, wanted, strict=True)
    return all(mine.shape == its.shape and torch.allclose(mine, its, rtol=0.1) for mine, its in pairs)


@wrong
def every_entry_on_its_own_scale(found: Sequence[Tensor], wanted: Sequence[Tensor]) -> bool:
    """here every entry is measured against itself. Where terms cancel, an entry is small and its rounding is not.

    Source: ten tests that failed on other GPUs until atol was raised: pytorch/pytorch pull request 60462, 2021
    """
    pairs = zip(found, wanted, strict=True)
    return all(mine.shape == its.shape and torch.allclose(mine, its, rtol=1e-5, atol=0) for mine, its in pairs)


@wrong
def one_scale_for_all_tensors(found: Sequence[Tensor], wanted: Sequence[Tensor]) -> bool:
    """here one bound serves for all tensors. Where a neighbour is large, a small tensor may be wrong in every entry."""
    bound = 1e-5 * max(its.abs().max() for its in wanted)
    return all(bool((mine - its).abs().max() <= bound) for mine, its in zip(found, wanted, strict=True))


@wrong
def a_quotient(found: Sequence[Tensor], wanted: Sequence[Tensor]) -> bool:
    """this is what a quotient gives, or a `<` without `=`. In a tensor of zeros, as a unit that never fires has it,
    0 / 0 is NaN and 0 is not below 0: multiply the bound, and allow a difference that equals it.
    """
    pairs = zip(found, wanted, strict=True)
    return all(bool((mine - its).abs().max() / its.abs().max() <= 1e-5) for mine, its in pairs)
