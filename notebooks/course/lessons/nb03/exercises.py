"""Exercises of notebook 03: what a row weighs, a test that catches it, and what a rank must call backward on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import torch
from torch import Tensor

from course.kit.learn.exercise import Case, Exercise, Mistake, Trial
from frcnn_lite.parallel import chunk_sizes


def row_weights(rows: int, devices: int) -> list[float]:
    sizes = chunk_sizes(rows, devices)
    return [1 / (len(sizes) * size) for size in sizes for _ in range(size)]


def _all_the_same(rows: int, gpus: int) -> list[float]:
    return [1 / rows] * rows


def _divided_by_gpus(rows: int, gpus: int) -> list[float]:
    return [1 / (gpus * size) for size in chunk_sizes(rows, gpus) for _ in range(size)]


def _within_its_gpu(rows: int, gpus: int) -> list[float]:
    return [1 / size for size in chunk_sizes(rows, gpus) for _ in range(size)]


def _weight_cases(random: Random) -> Sequence[Case]:
    fixed = [(10, 4), (10, 2), (9, 2), (9, 4), (10, 8)]
    return [Case(pair) for pair in fixed + [(random.randint(1, 40), random.randint(1, 8)) for _ in range(30)]]


def rank_loss(sums: Sequence[float], counts: Sequence[float], rank: int) -> float:
    return len(sums) * sums[rank] / max(sum(counts), 1)


def _own_mean(sums: Sequence[float], counts: Sequence[float], rank: int) -> float:
    return sums[rank] / max(counts[rank], 1)


def _own_mean_and_a_small_number(sums: Sequence[float], counts: Sequence[float], rank: int) -> float:
    return sums[rank] / (counts[rank] + 1e-4)


def _without_world_size(sums: Sequence[float], counts: Sequence[float], rank: int) -> float:
    return sums[rank] / max(sum(counts), 1)


def _own_mean_scaled(sums: Sequence[float], counts: Sequence[float], rank: int) -> float:
    return len(sums) * sums[rank] / max(counts[rank], 1)


def _sum_of_all(sums: Sequence[float], counts: Sequence[float], rank: int) -> float:
    return sum(sums) / max(sum(counts), 1)


def _sum_of_all_scaled(sums: Sequence[float], counts: Sequence[float], rank: int) -> float:
    return len(sums) * _sum_of_all(sums, counts, rank)


def _small_number_added(sums: Sequence[float], counts: Sequence[float], rank: int) -> float:
    return len(sums) * sums[rank] / (sum(counts) + 1e-4)


def _each_at_least_one(sums: Sequence[float], counts: Sequence[float], rank: int) -> float:
    return len(sums) * sums[rank] / sum(max(count, 1) for count in counts)


def _clamped_after_the_division(sums: Sequence[float], counts: Sequence[float], rank: int) -> float:
    return sums[rank] / max(sum(counts) / len(counts), 1)


def _ranks_that_count(sums: Sequence[float], counts: Sequence[float], rank: int) -> float:
    return sum(count > 0 for count in counts) * sums[rank] / max(sum(counts), 1)


def _rank_cases(random: Random) -> Sequence[Case]:
    """Ranks that have counted nothing are at any place, and the question is about one that has counted, or has not."""
    fixed: list[tuple[list[float], list[int], int]] = [([6.0, 2.0], [3, 1], 1), ([6.0, 0.0], [4, 0], 0)]
    fixed += [([6.0, 0.0], [4, 0], 1), ([3.0, 0.0, 0.0, 0.0], [1, 0, 0, 0], 0)]
    fixed += [([0.0, 0.0], [0, 0], 0), ([9.0, 3.0, 1.0], [3, 2, 1], 0)]
    cases = [Case(arguments) for arguments in fixed]
    for k in range(20):
        ranks = random.randint(2, 8)
        counts = [random.randint(0, 40 if k % 2 else 2) for _ in range(ranks)]
        sums = [count * random.uniform(0.1, 3) for count in counts]
        cases.append(Case((sums, counts, random.randrange(ranks))))
    return cases


Compute = Callable[[Sequence[Tensor], int], Tensor]
THE_SAME_SUM = "the mean of all rows, joined again"  # adds in the order of the batch


@dataclass(frozen=True)
class Program:
    """A way to compute the loss of a batch from `losses` (rows,) on some GPUs; a test calls it like a function."""

    name: str
    is_right: bool
    compute: Compute

    def __call__(self, losses: Tensor, devices: int) -> Tensor:
        return self.compute(losses.chunk(devices), devices)

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


def _programs(random: Random) -> Sequence[Case]:
    """Three right programs and six wrong ones."""
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
    }
    for k in random.sample(range(4), 2):
        wrong[f"the mean of GPU {k} alone"] = partial(_one_gpu_alone, k)
    programs = [Program(name, True, compute) for name, compute in right.items()]
    return [Trial((p,)) for p in [*programs, *(Program(name, False, compute) for name, compute in wrong.items())]]


def check_loss(program: Callable[[Tensor, int], Tensor]) -> None:
    for rows, devices in ((8, 4), (9, 2), (9, 4), (10, 4)):
        losses = torch.arange(float(rows))  # noqa: FL002 on the CPU
        torch.testing.assert_close(program(losses, devices), losses.mean())


def _even_chunks_only(program: Callable[[Tensor, int], Tensor]) -> None:
    losses = torch.arange(8.0)  # noqa: FL002 on the CPU
    torch.testing.assert_close(program(losses, 4), losses.mean())


def _all_alike(program: Callable[[Tensor, int], Tensor], devices: Sequence[int] = (4,)) -> None:
    losses = torch.ones(10)  # noqa: FL002 on the CPU
    for count in devices:
        torch.testing.assert_close(program(losses, count), losses.mean())


def _bit_for_bit(program: Callable[[Tensor, int], Tensor]) -> None:
    losses = torch.arange(10.0) / 7  # noqa: FL002 on the CPU
    assert program(losses, 4) == losses.mean()


def _returns_the_comparison(program: Callable[[Tensor, int], Tensor]) -> bool:
    losses = torch.arange(10.0)  # noqa: FL002 on the CPU
    return bool(torch.isclose(program(losses, 4), losses.mean()))


def _one_gpu_only(program: Callable[[Tensor, int], Tensor]) -> None:
    losses = torch.arange(10.0)  # noqa: FL002 on the CPU
    torch.testing.assert_close(program(losses, 1), losses.mean())


def _is_bit_for_bit(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    """Only a right program that adds in the order of the batch passes; the others fail by an assertion."""
    ended = {case.args[0]: end for case, end in zip(cases, given, strict=True)}
    passed = [program.name for program, end in ended.items() if end.passed]
    others = [end for program, end in ended.items() if program.is_right and not end.passed]
    right = {program.name for program in ended if program.is_right}
    asserted = all(end.why.startswith("AssertionError") for end in others)
    return THE_SAME_SUM in passed and set(passed) < right and asserted


def _close(given: Any, expected: Any) -> bool:
    """Equal within the rounding of a float32: numbers, lists of them, and tensors."""
    mine, right = (torch.as_tensor(value, dtype=torch.float64, device="cpu") for value in (given, expected))
    return mine.shape == right.shape and torch.allclose(mine, right, rtol=1e-6, atol=1e-9)


EXERCISES = (
    Exercise(
        key="03.row_weights",
        task="How much each of `rows` rows weighs in the mean of the GPUs' mean losses, in order, as a list.",
        reference=row_weights,
        cases=_weight_cases,
        agree=_close,
        hints=(
            "`parallel.chunk_sizes(rows, devices)` tells how many rows sit on each GPU that has any.",
            "Within a chunk a row weighs 1 / size; the chunks are then averaged. Over how many of them?",
            "1 / (number of chunks * size of the row's own chunk).",
        ),
        mistakes=(
            Mistake(
                "all rows alike",
                "this is the same weight for every row. That is what one wants; the mean of means does it only where "
                "all chunks are of one size.",
                "the warning about scalars is called OK in airsplay/lxmert issue 17, 2019",
                answers=(_all_the_same,),
            ),
            Mistake(
                "divides by the GPUs",
                "this is what comes out when the number of GPUs divides. The vector that gather returns has one entry "
                "for each replica that *ran*: 9 rows on 4 GPUs make 3.",
                'as many parts as GPUs: the post of December 2021 in notebook 01\'s "Further reading"',
                answers=(_divided_by_gpus,),
            ),
            Mistake(
                "within its GPU",
                "this is the weight of a row in the mean of its own GPU. Of these means the mean is taken once more, "
                "so each is divided by the number of replicas that ran. All weights together make 1.",
                answers=(_within_its_gpu,),
            ),
        ),
    ),
    Exercise(
        key="03.rank_loss",
        task="The number on which process `rank` calls backward() so that DDP's average of the gradients is that of "
        "sum(sums) / sum(counts).",
        reference=rank_loss,
        cases=_rank_cases,
        agree=_close,
        hints=(
            "Gradients are linear: DDP gives the gradient of the *mean* of what the processes call backward() on.",
            "That mean must be sum(sums) / sum(counts); each process can offer only its own sum. What undoes the mean?",
            "`len(sums) * sums[rank] / sum(counts)`, with the count kept from being 0: `max(sum(counts), 1)`.",
        ),
        mistakes=(
            Mistake(
                "its own mean",
                "this is what comes out when the process's own count divides. A row or token on a process with few of "
                "them then weighs more than one on a process with many.",
                "huggingface/transformers issue 34242, 2024",
                answers=(_own_mean, _own_mean_and_a_small_number),
            ),
            Mistake(
                "its own mean, scaled",
                "this is what comes out when the process's own count divides and DDP's average is undone. The "
                "processes' means then add up to their sum; divide by the count of *all* processes instead.",
                answers=(_own_mean_scaled,),
            ),
            Mistake(
                "forgets the average",
                "this is what comes out when the count of all divides and nothing else is done. DDP will divide by the "
                "number of processes as well, so the gradient is too small by that factor.",
                "asked about in facebookresearch/fairseq issue 494, 2019; repaired in meta-pytorch/torchtune pull "
                "request 2172, 2024",
                answers=(_without_world_size,),
            ),
            Mistake(
                "the sum of all",
                "this is what comes of the sums of all processes. What a different process has computed arrives "
                "here as a number without a graph, so it has no gradient here. Each process offers its own sum, and "
                "DDP joins them.",
                "the loss is reduced over all processes before backward in sanderwood/bgpt issue 5, 2024",
                answers=(_sum_of_all, _sum_of_all_scaled),
            ),
            Mistake(
                "adds a small number to the count",
                "this is what comes out when a small number is added to the count. It prevents a division by 0 and "
                "makes all losses a little too small. `max(count, 1)` changes nothing where something was counted.",
                "`/ (fg_cnt + 1e-4)` in a guide to Faster R-CNN on several GPUs, 2017",
                answers=(_small_number_added,),
            ),
            Mistake(
                "at least one for each",
                "this is what comes out when each process counts at least 1. A process that has counted nothing then "
                "makes everybody's loss smaller: keep the *sum* of the counts from being 0, and no count by itself.",
                answers=(_each_at_least_one,),
            ),
            Mistake(
                "at least one after the division",
                "this is what comes out when the count *for each process* is kept from being less than 1. It is right "
                "as long as there is one thing to count for each process, and too small a loss with fewer.",
                "`torch.clamp(num_boxes / get_world_size(), min=1)`, facebookresearch/detr, `models/detr.py`, 2020",
                answers=(_clamped_after_the_division,),
            ),
            Mistake(
                "only those that count",
                "this is what comes out when DDP's average is undone by the number of processes that have counted "
                "something. DDP divides by the number of *all* processes.",
                answers=(_ranks_that_count,),
            ),
        ),
    ),
    Exercise(
        key="03.check_loss",
        task="A test: it calls `program(losses, devices)` and raises an AssertionError where the result is not the "
        "mean of all losses, whatever the number of GPUs. It passes on right programs and fails on wrong ones.",
        reference=check_loss,
        cases=_programs,
        hints=(
            "The program decides how to compute, and you on what you try it. When is a mean of means right by luck?",
            "Rows that do not divide by the GPUs, with losses that are not all the same. Compare with `losses.mean()`.",
            "`torch.testing.assert_close(program(losses, 4), losses.mean())` with `losses = torch.arange(10.0)`.",
        ),
        mistakes=(
            Mistake(
                "even chunks only",
                "this is how a test ends that tries only batches which divide evenly. There every GPU has as many rows "
                "as the others, and the mean of means is right, so a wrong program passes.",
                "its documentation asks for such: `encoding/parallel.py`, zhanghang1989/PyTorch-Encoding, 2018",
                answers=(_even_chunks_only,),
            ),
            Mistake(
                "bit for bit",
                "this is how a test ends that compares bit for bit. A right program may add in a different order, on "
                "which the last digits of a float depend.",
                "asked about in pytorch/pytorch issue 14007, 2018",
                answers=(_bit_for_bit,),
                recognise=_is_bit_for_bit,
            ),
            Mistake(
                "all rows alike",
                "this is how a test ends that gives all rows the same loss. Then the mean of any of them is the mean "
                "of all, however a program weighs them.",
                "a test with the same data on every rank: hpcaitech/ColossalAI issue 2755, 2023",
                answers=(_all_alike, partial(_all_alike, devices=range(1, 9))),
            ),
            Mistake(
                "never fails",
                "every program passes this test. So ends one that *returns* False where it should `assert`, and one "
                "that tries a single GPU, on which every program is right.",
                "pytest warns about tests that return something since version 7.2, 2022",
                answers=(_returns_the_comparison, _one_gpu_only),
            ),
        ),
    ),
)
