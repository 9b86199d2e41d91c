"""A test: it calls `program(losses, gpus)` and raises an AssertionError where the result is not the mean of all
losses, whatever the number of GPUs. It passes on right programs and fails on wrong ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import torch
from torch import Tensor

from course.kit.learn.exercise import Case, Trial
from course.kit.learn.puzzle import also, wrong

hints = (
    "The program decides how to compute, and you on what you try it. When is a mean of means right by luck?",
    "Rows that do not divide by the GPUs, with losses that are not all the same. Compare with `losses.mean()`.",
    "`torch.testing.assert_close(program(losses, 4), losses.mean())` with `losses = torch.arange(10.0)`.",
)


Compute = Callable[[Sequence[Tensor], int], Tensor]
THE_SAME_SUM = "the mean of all rows, joined again"  # adds in the order of the batch


@dataclass(frozen=True)
class Program:
    """A way to compute the loss of a batch from `losses` (rows,) on some GPUs; a test calls it like a function."""

    name: str
    is_right: bool
    compute: Compute

    def __call__(self, losses: Tensor, gpus: int) -> Tensor:
        return self.compute(losses.chunk(gpus), gpus)

    def __repr__(self) -> str:
        return f"<program: {self.name}>"


def _mean_of_means(chunks: Sequence[Tensor], gpus: int) -> Tensor:
    return torch.stack([chunk.mean() for chunk in chunks]).mean()


def _sums_by_counts(chunks: Sequence[Tensor], gpus: int) -> Tensor:
    return torch.stack([chunk.sum() for chunk in chunks]).sum() / sum(map(len, chunks))


def _means_weighted_by_rows(chunks: Sequence[Tensor], gpus: int) -> Tensor:
    return torch.stack([chunk.mean() * len(chunk) for chunk in chunks]).sum() / sum(map(len, chunks))


def _without_a_short_chunk(chunks: Sequence[Tensor], gpus: int) -> Tensor:
    return torch.cat([chunk for chunk in chunks if len(chunk) == len(chunks[0])]).mean()


def _one_gpu_alone(k: int, chunks: Sequence[Tensor], gpus: int) -> Tensor:
    return chunks[k % len(chunks)].mean()


def cases(random: Random) -> Sequence[Case]:
    """Three right programs and seven wrong ones."""
    right: dict[str, Compute] = {
        THE_SAME_SUM: lambda chunks, gpus: torch.cat(list(chunks)).mean(),
        "the sums by the counts": _sums_by_counts,
        "the means, weighted by the rows": _means_weighted_by_rows,
    }
    wrong: dict[str, Compute] = {
        "the mean of the means": _mean_of_means,
        "the sum of the means": lambda chunks, gpus: _mean_of_means(chunks, gpus) * len(chunks),
        "the sum of the means by the GPUs": lambda chunks, gpus: _mean_of_means(chunks, gpus) * len(chunks) / gpus,
        "the mean without a last short chunk": _without_a_short_chunk,
        "the sum, which is the same on any number of GPUs": lambda chunks, gpus: torch.cat(list(chunks)).sum(),
    }
    for k in random.sample(range(4), 2):
        wrong[f"the mean of GPU {k} alone"] = partial(_one_gpu_alone, k)
    programs = [Program(name, True, compute) for name, compute in right.items()]
    return [Trial((p,)) for p in [*programs, *(Program(name, False, compute) for name, compute in wrong.items())]]


def check_loss(program: Callable[[Tensor, int], Tensor]) -> None:
    for rows, gpus in ((8, 4), (9, 2), (9, 4), (10, 4)):
        losses = torch.arange(float(rows))  # noqa: FL002 on the CPU
        torch.testing.assert_close(program(losses, gpus), losses.mean())


def _is_bit_for_bit(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    """Only a right program that adds in the order of the batch passes; the others fail by an assertion."""
    ended = {case.args[0]: end for case, end in zip(cases, given, strict=True)}
    passed = [program.name for program, end in ended.items() if end.passed]
    others = [end for program, end in ended.items() if program.is_right and not end.passed]
    right = {program.name for program in ended if program.is_right}
    asserted = all(end.why.startswith("AssertionError") for end in others)
    return THE_SAME_SUM in passed and set(passed) < right and asserted


@wrong
def even_chunks_only(program: Callable[[Tensor, int], Tensor]) -> None:
    """this is how a test ends that tries only batches which divide evenly. There every GPU has as many rows as the
    others, and the mean of means is right, so a wrong program passes.

    Source: its documentation asks for such: `encoding/parallel.py`, zhanghang1989/PyTorch-Encoding, 2018
    """
    losses = torch.arange(8.0)  # noqa: FL002 on the CPU
    torch.testing.assert_close(program(losses, 4), losses.mean())


@wrong(recognise=_is_bit_for_bit)
def bit_for_bit(program: Callable[[Tensor, int], Tensor]) -> None:
    """this is how a test ends that compares bit for bit. A right program may add in a different order, on which the
    last digits of a float depend.

    Source: asked about in pytorch/pytorch issue 14007, 2018
    """
    losses = torch.arange(10.0) / 7  # noqa: FL002 on the CPU
    assert program(losses, 4) == losses.mean()


@wrong
def all_rows_alike(program: Callable[[Tensor, int], Tensor], counts: Sequence[int] = (4,)) -> None:
    """this is how a test ends that gives all rows the same loss. Then the mean of any of them is the mean of all,
    however a program weighs them.

    Source: a test with the same data on every rank: hpcaitech/ColossalAI issue 2755, 2023
    """
    losses = torch.ones(10)  # noqa: FL002 on the CPU
    for count in counts:
        torch.testing.assert_close(program(losses, count), losses.mean())


@also(all_rows_alike)
def _(*given):
    return all_rows_alike(*given, counts=range(1, 9))


@wrong
def never_fails(program: Callable[[Tensor, int], Tensor]) -> bool:
    """every program passes this test. So ends one that *returns* False where it should `assert`, and one that tries a
    single GPU, on which every program is right.

    Source: pytest warns about tests that return something since version 7.2, 2022
    """
    losses = torch.arange(10.0)  # noqa: FL002 on the CPU
    return bool(torch.isclose(program(losses, 4), losses.mean()))


@also(never_fails)
def one_gpu_only(program: Callable[[Tensor, int], Tensor]) -> None:
    losses = torch.arange(10.0)  # noqa: FL002 on the CPU
    torch.testing.assert_close(program(losses, 1), losses.mean())
