"""Exercises of notebook 03: what a row weighs, what a rank must call backward on, and the learning rate."""

import math
from collections.abc import Sequence
from random import Random
from typing import Any

from course.learn.exercise import Case, Exercise, Mistake
from frcnn_lite.parallel import chunk_sizes


def row_weights(rows: int, gpus: int) -> list[float]:
    sizes = chunk_sizes(rows, gpus)
    return [1 / (len(sizes) * size) for size in sizes for _ in range(size)]


def _all_the_same(rows: int, gpus: int) -> list[float]:
    return [1 / rows] * rows


def _divided_by_gpus(rows: int, gpus: int) -> list[float]:
    return [1 / (gpus * size) for size in chunk_sizes(rows, gpus) for _ in range(size)]


def _weight_cases(random: Random) -> Sequence[Case]:
    fixed = [(10, 4), (10, 2), (9, 2), (9, 4), (10, 8)]
    return [Case(pair) for pair in fixed + [(random.randint(1, 40), random.randint(1, 8)) for _ in range(30)]]


def rank_loss(sums: Sequence[float], counts: Sequence[float], rank: int) -> float:
    return len(sums) * sums[rank] / max(sum(counts), 1)


def _own_mean(sums: Sequence[float], counts: Sequence[float], rank: int) -> float:
    return sums[rank] / max(counts[rank], 1)


def _without_world_size(sums: Sequence[float], counts: Sequence[float], rank: int) -> float:
    return sums[rank] / max(sum(counts), 1)


def _rank_cases(random: Random) -> Sequence[Case]:
    fixed = [([6.0, 2.0], [3, 1], 1), ([6.0, 0.0], [4, 0], 1), ([0.0, 0.0], [0, 0], 0), ([9.0, 3.0, 1.0], [3, 2, 1], 0)]
    cases = [Case(arguments) for arguments in fixed]
    for _ in range(20):
        ranks = random.randint(2, 8)
        counts = [random.randint(1, 40) for _ in range(ranks)]
        sums = [count * random.uniform(0.1, 3) for count in counts]
        cases.append(Case((sums, counts, random.randrange(ranks))))
    return cases


def learning_rate(rate: float, old: tuple[int, int], new: tuple[int, int]) -> float:
    return rate * (new[0] * new[1]) / (old[0] * old[1])


def _by_gpus(rate: float, old: tuple[int, int], new: tuple[int, int]) -> float:
    return rate * new[0] / old[0]


def _by_rows_per_gpu(rate: float, old: tuple[int, int], new: tuple[int, int]) -> float:
    return rate * new[1] / old[1]


def _gpus_twice(rate: float, old: tuple[int, int], new: tuple[int, int]) -> float:
    return learning_rate(rate, old, new) * new[0] / old[0]


def _square_root(rate: float, old: tuple[int, int], new: tuple[int, int]) -> float:
    return rate * math.sqrt(learning_rate(1.0, old, new))


def _rate_cases(random: Random) -> Sequence[Case]:
    fixed = [(0.02, (8, 2), (1, 2)), (0.02, (8, 2), (4, 4)), (0.1, (1, 256), (8, 256)), (0.1, (8, 32), (4, 64))]
    drawn = [
        (random.uniform(0.001, 0.1), (random.randint(1, 8), random.randint(1, 32)), (random.randint(1, 64), 2 * k + 1))
        for k in range(20)
    ]
    return [Case(arguments) for arguments in [*fixed, *drawn]]


def _close(given: Any, expected: Any) -> bool:
    """Equal within rounding; lists element by element."""
    if isinstance(expected, list):
        return len(given) == len(expected) and all(map(_close, given, expected))
    return math.isclose(given, expected, rel_tol=1e-9, abs_tol=1e-12)


EXERCISES = (
    Exercise(
        key="03.row_weights",
        task="How much each of `rows` rows weighs in the mean of the GPUs' mean losses, in order, as a list.",
        reference=row_weights,
        cases=_weight_cases,
        agree=_close,
        hints=(
            "`parallel.chunk_sizes(rows, gpus)` tells how many rows sit on each GPU that has any.",
            "Within a chunk a row weighs 1 / size; the chunks are then averaged. Over how many of them?",
            "1 / (number of chunks * size of the row's own chunk).",
        ),
        mistakes=(
            Mistake(
                "all rows alike",
                "you gave every row the same weight. That is what one wants; the mean of means does it only where all "
                "chunks are of one size.",
                "the warning about scalars is called OK in airsplay/lxmert issue 17, 2019",
                answers=(_all_the_same,),
            ),
            Mistake(
                "divides by the GPUs",
                "you divided by the number of GPUs. The vector that gather returns has one entry for each replica that "
                "*ran*: 9 rows on 4 GPUs make 3.",
                "as many parts as cards: the post of notebook 01, 2021",
                answers=(_divided_by_gpus,),
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
                "you divided by the process's own count. A box on a process with few boxes then weighs more than one "
                "on a process with many.",
                "huggingface/transformers issue 34242, 2024",
                answers=(_own_mean,),
            ),
            Mistake(
                "forgets the average",
                "you divided by the count of all, but DDP will divide by the number of processes as well: the gradient "
                "is too small by that factor.",
                "asked about in facebookresearch/fairseq issue 494, 2019; repaired in meta-pytorch/torchtune pull "
                "request 2172, 2024",
                answers=(_without_world_size,),
            ),
        ),
    ),
    Exercise(
        key="03.learning_rate",
        task="Learning rate by the linear rule, from `old` to `new`, each a pair (GPUs, rows per GPU).",
        reference=learning_rate,
        cases=_rate_cases,
        agree=_close,
        hints=(
            "The rule speaks of the minibatch: all rows that one update is made of.",
            "GPUs times rows per GPU, before and after.",
            "`rate * (new[0] * new[1]) / (old[0] * old[1])`",
        ),
        mistakes=(
            Mistake(
                "GPUs only",
                "you scaled with the number of GPUs and forgot the rows on each.",
                "open-mmlab/mmdetection pull request 1038, 2019",
                answers=(_by_gpus,),
            ),
            Mistake(
                "rows per GPU only",
                "you scaled with the rows of one GPU. An update is made of the rows of all of them.",
                "an answer in PistonY/ModelZoo.pytorch issue 1, 2020",
                answers=(_by_rows_per_gpu,),
            ),
            Mistake(
                "GPUs twice",
                "you scaled with the number of GPUs once more because DDP averages gradients. The average is already "
                "what makes the update one over the total batch.",
                "facebookresearch/moco issue 98, 2021",
                answers=(_gpus_twice,),
            ),
            Mistake(
                "square root",
                "you scaled with the square root. That is another rule, which keeps the variance of an update; the "
                "linear one keeps its mean.",
                "Krizhevsky, One weird trick for parallelizing convolutional neural networks, arXiv 1404.5997, 2014",
                answers=(_square_root,),
            ),
        ),
    ),
)
