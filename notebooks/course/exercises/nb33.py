"""Exercises of notebook 33: may a test run here, are these gradients the same, how often does a step wait."""

from collections.abc import Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor

from course.learn.exercise import Case, Exercise, Mistake

Copy = tuple[str, str, str]


def may_run(available: bool, count: int, needed: int) -> bool:
    return count >= needed


def _asks_available(available: bool, count: int, needed: int) -> bool:
    return available


def _any_gpu(available: bool, count: int, needed: int) -> bool:
    return count > 0


def _machine_cases(random: Random) -> Sequence[Case]:
    fixed = [(True, 1, 2), (True, 2, 2), (False, 0, 2), (True, 0, 1), (True, 4, 5)]
    drawn = [(random.random() < 0.8, random.randint(0, 8), random.randint(1, 5)) for _ in range(20)]
    return [Case(machine) for machine in fixed + drawn]


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
    return cases


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


def _equal(given: Any, expected: Any) -> bool:
    """`True` and 1 are told apart, so a count does not answer a question."""
    return type(given) is type(expected) and given == expected


EXERCISES = (
    Exercise(
        key="33.may_run",
        task="Whether a test that needs `needed` GPUs may run where `torch.cuda.is_available()` says `available` and "
        "`torch.cuda.device_count()` says `count`.",
        reference=may_run,
        cases=_machine_cases,
        agree=_equal,
        hints=(
            "Which of the two numbers says what the test needs to know?",
            "A machine with one GPU is available, too. And with CUDA_VISIBLE_DEVICES empty some builds say available.",
            "`count >= needed`",
        ),
        mistakes=(
            Mistake(
                "asks whether CUDA is there",
                "you asked whether CUDA is available. With one GPU it is, and a test for two fails there.",
                "repaired in meta-pytorch/torchtune pull request 196, 2024, and pytorch/torchtitan pull request 4377, "
                "2026",
                answers=(_asks_available,),
            ),
            Mistake(
                "any GPU will do",
                "you asked for at least one GPU, whatever the test needs.",
                "a test for five GPUs on a machine with fewer: tinygrad/tinygrad issue 4145, 2024",
                answers=(_any_gpu,),
            ),
        ),
    ),
    Exercise(
        key="33.same_gradients",
        task="True where every tensor of `found` agrees with that of `wanted`: no entry is off by more than 1e-5 of "
        "the largest entry of that tensor.",
        reference=same_gradients,
        cases=_gradient_cases,
        agree=_equal,
        hints=(
            "Several devices add up in a different order, so the last bits differ.",
            "Each tensor has a scale of its own: measure the largest difference against its largest entry.",
            "`(mine - its).abs().max() <= 1e-5 * its.abs().max()`, for all pairs; make it a bool.",
        ),
        mistakes=(
            Mistake(
                "bit for bit",
                "you compared bit for bit. Parts of a batch are added up in a different order, on which sums of floats "
                "depend.",
                "asked about in pytorch/pytorch issue 14007, 2018; a test in RL-Align/RL-Kernel pull request 199, 2026",
                answers=(_bit_for_bit,),
            ),
            Mistake(
                "a tenth is close enough",
                "you let a tenth pass. A row that is counted twice in a batch of twenty stays below that.",
                "rtol=1e-01 in PaddlePaddle/Paddle pull request 21563, 2019",
                answers=(_too_loose,),
            ),
            Mistake(
                "every entry on its own scale",
                "you measured every entry against itself. Where terms cancel, an entry is small, its rounding not.",
                "ten tests that failed on other GPUs until atol was raised: pytorch/pytorch pull request 60462, 2021",
                answers=(_entry_by_entry,),
            ),
        ),
    ),
    Exercise(
        key="33.host_reads",
        task="How many of `copies`, each (operator, from, to), bring something from a GPU to the CPU: there a real "
        "step waits for its GPU.",
        reference=host_reads,
        cases=_copy_cases,
        agree=_equal,
        hints=(
            "Not every copy, and not only those by `.cpu()`.",
            "`loss.item()` is a copy too; it shows up as `_local_scalar_dense`. The operator's name need not matter.",
            'Count those whose source starts with "cuda" and whose target is "cpu".',
        ),
        mistakes=(
            Mistake(
                "item is not a copy",
                "you counted `.cpu()` and forgot `.item()`, which waits just as long.",
                "I thought .item() is almost immediate: rosinality/style-based-gan-pytorch pull request 50, 2019",
                answers=(_only_to_cpu,),
            ),
            Mistake(
                "every copy",
                "you counted every copy. Those to a GPU and between GPUs are queued; the host goes on.",
                "copies to the GPU taken for waiting: pytorch/pytorch issue 135794, 2024",
                answers=(_every_copy,),
            ),
        ),
    ),
)
