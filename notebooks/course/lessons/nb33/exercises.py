"""Exercises of notebook 33: may a test run here, are these gradients the same, how often does a step wait."""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from course.kit.learn.agree import same_values
from course.kit.learn.exercise import Case, Exercise, Mistake

Copy = tuple[str, str, str]


def may_run(available: bool, count: int, needed: int) -> bool:
    return count >= needed


def _asks_available(available: bool, count: int, needed: int) -> bool:
    return available


def _machine_cases(random: Random) -> Sequence[Case]:
    """CUDA is available where there is a GPU, and nowhere else."""
    counts = [(1, 2), (2, 2), (0, 2), (0, 1), (4, 5)]
    counts += [(random.randint(0, 8), random.randint(1, 5)) for _ in range(20)]
    return [Case((count > 0, count, needed)) for count, needed in counts]


def same_gradients(found: Sequence[Tensor], wanted: Sequence[Tensor]) -> bool:
    pairs = zip(found, wanted, strict=True)
    return all(
        mine.shape == its.shape and bool((mine - its).abs().max() <= 1e-5 * its.abs().max()) for mine, its in pairs
    )


def _bit_for_bit(found: Sequence[Tensor], wanted: Sequence[Tensor]) -> bool:
    return all(torch.equal(mine, its) for mine, its in zip(found, wanted, strict=True))


def _too_loose(found: Sequence[Tensor], wanted: Sequence[Tensor]) -> bool:
    pairs = zip(found, wanted, strict=True)
    return all(mine.shape == its.shape and torch.allclose(mine, its, rtol=0.1) for mine, its in pairs)


def _entry_by_entry(found: Sequence[Tensor], wanted: Sequence[Tensor]) -> bool:
    pairs = zip(found, wanted, strict=True)
    return all(mine.shape == its.shape and torch.allclose(mine, its, rtol=1e-5, atol=0) for mine, its in pairs)


def _as_quotient(found: Sequence[Tensor], wanted: Sequence[Tensor]) -> bool:
    pairs = zip(found, wanted, strict=True)
    return all(bool((mine - its).abs().max() / its.abs().max() <= 1e-5) for mine, its in pairs)


def _one_scale(found: Sequence[Tensor], wanted: Sequence[Tensor]) -> bool:
    bound = 1e-5 * max(its.abs().max() for its in wanted)
    return all(bool((mine - its).abs().max() <= bound) for mine, its in zip(found, wanted, strict=True))


def _gradient_cases(random: Random) -> Sequence[Case]:
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
    return cases + [Case(pair) for pair in _hidden_differences(generator)]


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


def host_reads(copies: Sequence[Copy]) -> int:
    return sum(source.startswith("cuda") and target == "cpu" for _, source, target in copies)


def _only_to_cpu(copies: Sequence[Copy]) -> int:
    return sum(name == "_to_copy" and source.startswith("cuda") and target == "cpu" for name, source, target in copies)


def _every_copy(copies: Sequence[Copy]) -> int:
    return len(copies)


def _copy_cases(random: Random) -> Sequence[Case]:
    kinds = [
        ("scatter", "cpu", "cuda:0"),
        ("_to_copy", "cpu", "cuda:1"),
        ("broadcast_coalesced", "cuda:0", "cuda:1"),
        ("gather", "cuda:1", "cuda:0"),
        ("_to_copy", "cuda:0", "cpu"),
        ("_local_scalar_dense", "cuda:0", "cpu"),
        ("copy_", "cuda:1", "cpu"),
    ]
    drawn = [[random.choice(kinds) for _ in range(random.randint(0, 12))] for _ in range(20)]
    return [Case((copies,)) for copies in [[], kinds[:4], kinds, [kinds[5]] * 3, *drawn]]


EXERCISES = (
    Exercise(
        key="33.may_run",
        task="Whether a test that needs `needed` GPUs may run where `torch.cuda.is_available()` says `available` and "
        "`torch.cuda.device_count()` says `count`.",
        reference=may_run,
        cases=_machine_cases,
        agree=same_values,
        hints=(
            "Which of the two numbers says what the test needs to know?",
            "On a machine with one GPU, CUDA is available.",
            "`count >= needed`",
        ),
        mistakes=(
            Mistake(
                "any GPU will do",
                "this is the answer to whether there is a GPU at all, as `is_available()` and `count > 0` give it. "
                "With one GPU there is, and a test for two fails there.",
                "repaired in meta-pytorch/torchtune pull request 196, 2024, and pytorch/torchtitan pull request 4377, "
                "2026; a test for five GPUs on a machine with fewer: tinygrad/tinygrad issue 4145, 2024",
                answers=(_asks_available,),
            ),
        ),
    ),
    Exercise(
        key="33.same_gradients",
        task="True where every tensor of `found` agrees with that of `wanted`: no entry is off by more than 1e-5 of "
        "the largest entry of that tensor.",
        reference=same_gradients,
        cases=_gradient_cases,
        agree=same_values,
        hints=(
            "Several devices add up in a different order, so the last bits differ.",
            "Each tensor has a scale of its own: measure the largest difference against its largest entry.",
            "`(mine - its).abs().max() <= 1e-5 * its.abs().max()`, for all pairs; make it a bool.",
        ),
        mistakes=(
            Mistake(
                "bit for bit",
                "this is a comparison bit for bit. Parts of a batch are added up in a different order, on which sums "
                "of floats depend.",
                "asked about in pytorch/pytorch issue 14007, 2018; a test in RL-Align/RL-Kernel pull request 199, 2026",
                answers=(_bit_for_bit,),
            ),
            Mistake(
                "a tenth is close enough",
                "a difference of a tenth passes here. A row that is counted twice in a batch of twenty stays below "
                "that.",
                "rtol=1e-01 in PaddlePaddle/Paddle pull request 21563, 2019",
                answers=(_too_loose,),
            ),
            Mistake(
                "every entry on its own scale",
                "here every entry is measured against itself. Where terms cancel, an entry is small and its rounding "
                "is not.",
                "ten tests that failed on other GPUs until atol was raised: pytorch/pytorch pull request 60462, 2021",
                answers=(_entry_by_entry,),
            ),
            Mistake(
                "one scale for all tensors",
                "here one bound serves for all tensors. Where a neighbour is large, a small tensor may be wrong in "
                "every entry.",
                answers=(_one_scale,),
            ),
            Mistake(
                "a quotient",
                "this is what a quotient gives. For a tensor of zeros, as a unit that never fires has it, 0 / 0 is "
                "NaN and below no bound: multiply the bound instead.",
                answers=(_as_quotient,),
            ),
        ),
    ),
    Exercise(
        key="33.host_reads",
        task="How many of `copies`, each (operator, from, to), bring something from a GPU to the CPU: there a real "
        "step waits for its GPU.",
        reference=host_reads,
        cases=_copy_cases,
        agree=same_values,
        hints=(
            "Not every copy, and not only those by `.cpu()`.",
            "`loss.item()` is a copy too; it shows up as `_local_scalar_dense`. The operator's name need not matter.",
            'Count those whose source starts with "cuda" and whose target is "cpu".',
        ),
        mistakes=(
            Mistake(
                "item is not a copy",
                "this is the count of `_to_copy` alone. `.item()` is a copy to the host as well, and waits just as "
                "long.",
                "I thought .item() is almost immediate: rosinality/style-based-gan-pytorch pull request 50, 2019",
                answers=(_only_to_cpu,),
            ),
            Mistake(
                "every copy",
                "this is the count of every copy. Those to a GPU and between GPUs are queued; the host goes on.",
                "copies to the GPU taken for waiting: pytorch/pytorch issue 135794, 2024",
                answers=(_every_copy,),
            ),
        ),
    ),
)
