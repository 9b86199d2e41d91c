"""Exercises of notebook 06: who holds what, the loss of a picture, chunks with a smaller first, and how small."""

import math
from collections.abc import Sequence
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course.balance import balanced_chunks
from course.learn.exercise import Case, Exercise, Mistake
from frcnn_lite.parallel import chunk_sizes


def between_steps(weights: int, states: int, gpus: int) -> list[int]:
    return [weights * (1 + states)] + [0] * (gpus - 1)


def _split_evenly(weights: int, states: int, gpus: int) -> list[float]:
    return [weights * (1 + states) / gpus] * gpus


def _without_optimizer(weights: int, states: int, gpus: int) -> list[int]:
    return [weights] + [0] * (gpus - 1)


def _step_cases(random: Random) -> Sequence[Case]:
    drawn = [(random.randint(1, 500) * 1_000_000, random.randint(0, 2), random.randint(2, 8)) for _ in range(15)]
    return [Case(arguments) for arguments in [(100_000_000, 2, 4), (45_000_000, 1, 2), (8_000_000, 0, 8), *drawn]]


def image_losses(scores: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(scores, target, reduction="none").mean(dim=(1, 2))


def _mean_of_all(scores: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(scores, target)


def _number(scores: Tensor, target: Tensor) -> float:
    return F.cross_entropy(scores, target).item()


def _score_cases(random: Random) -> Sequence[Case]:
    shapes = [[2, 3, 4, 5], [1, 10, 2, 2], [5, 2, 3, 3]]
    shapes += [[random.randint(2, 6) for _ in range(4)] for _ in range(8)]
    generator = torch.Generator().manual_seed(random.randrange(2**31))
    return [
        Case(
            (
                torch.randn(shape, generator=generator),
                torch.randint(shape[1], [shape[0], *shape[2:]], generator=generator),
            )
        )
        for shape in shapes
    ]


def _same(given: Any, expected: Any) -> bool:
    if not (isinstance(given, Tensor) and isinstance(expected, Tensor)):
        return isinstance(given, float) and isinstance(expected, float) and math.isclose(given, expected, rel_tol=1e-4)
    return given.shape == expected.shape and torch.allclose(given, expected, rtol=1e-4, atol=1e-6)


def sizes(rows: int, gpus: int, first: int) -> list[int]:
    if gpus == 1:
        return [rows]
    own = min(first, rows // gpus)
    size, left_over = divmod(rows - own, gpus - 1)
    return [own] + [size + (k < left_over) for k in range(gpus - 1)]


def _falls_back(rows: int, gpus: int, first: int) -> list[int]:
    """The rule of Balanced-DataParallel, with one GPU put right."""
    if gpus == 1:
        return [rows]
    size, left_over = divmod(rows - first, gpus - 1)
    if first >= size:
        return chunk_sizes(rows, gpus)
    return [first] + [size + (k < left_over) for k in range(gpus - 1)]


def _always_first(rows: int, gpus: int, first: int) -> list[int]:
    own = rows if gpus == 1 else min(first, rows)
    size, left_over = divmod(rows - own, max(gpus - 1, 1))
    return [own] + [size + (k < left_over) for k in range(gpus - 1)]


def _size_cases(random: Random) -> Sequence[Case]:
    fixed = [(60, 4, 12), (9, 4, 3), (2, 4, 1), (5, 1, 2), (8, 3, 2), (3, 2, 3)]
    drawn = [(random.randint(0, 40), random.randint(1, 8), random.randint(0, 8)) for _ in range(25)]
    return [Case(arguments) for arguments in fixed + drawn]


def first_rows(rows: int, gpus: int, row: int, extra: int) -> int:
    def fullest(first: int) -> int:
        own, *others = balanced_chunks(rows, gpus, first)
        return max(extra + own * row, max(others) * row)

    return min(range(rows // gpus, -1, -1), key=fullest)  # of equals min takes the first: the largest


def _one(rows: int, gpus: int, row: int, extra: int) -> int:
    return min(1, rows // gpus)


def _none(rows: int, gpus: int, row: int, extra: int) -> int:
    return 0


def _even(rows: int, gpus: int, row: int, extra: int) -> int:
    return rows // gpus


def _row_cases(random: Random) -> Sequence[Case]:
    fixed = [(60, 4, 640, 3200), (60, 4, 640, 0), (8, 3, 100, 100), (16, 2, 10, 500)]
    drawn = [
        (random.randint(8, 96), random.randint(2, 8), row := random.randint(10, 900), random.randint(0, 12) * row)
        for _ in range(25)
    ]
    return [Case(arguments) for arguments in fixed + drawn]


EXERCISES = (
    Exercise(
        key="06.between_steps",
        task="Bytes on each of `gpus` GPUs between two steps of DataParallel: a model of `weights` bytes, an optimizer "
        "with `states` numbers for each weight, gradients set to None.",
        reference=between_steps,
        cases=_step_cases,
        hints=(
            "Look at the first column of the timeline.",
            "Replicas live for one step. Where are the parameters that `optimizer` was given?",
            "`[weights * (1 + states)] + [0] * (gpus - 1)`",
        ),
        mistakes=(
            Mistake(
                "split evenly",
                "you split the model over the GPUs. DataParallel splits rows; weights it copies, whole, for one step.",
                "the post of 2017: replicate splits the model evenly over N devices",
                answers=(_split_evenly,),
            ),
            Mistake(
                "without the optimizer",
                "you forgot what the optimizer keeps, for Adam twice the size of the weights.",
                "an answer in codertimo/BERT-pytorch issue 10, 2018",
                answers=(_without_optimizer,),
            ),
        ),
    ),
    Exercise(
        key="06.image_losses",
        task="From scores (B, C, H, W) and target (B, H, W) the mean cross entropy of each picture, (B,).",
        reference=image_losses,
        cases=_score_cases,
        agree=_same,
        hints=(
            "`F.cross_entropy` can leave the mean to you.",
            '`reduction="none"` gives (B, H, W). Which dimensions belong to one picture?',
            '`F.cross_entropy(scores, target, reduction="none").mean(dim=(1, 2))`',
        ),
        mistakes=(
            Mistake(
                "one number for all",
                "you returned one number for all rows of the replica. Joined with those of other replicas it makes a "
                "mean of means, in which rows of a small chunk weigh more.",
                "asked about in airsplay/lxmert issue 17, 2019",
                answers=(_mean_of_all,),
            ),
            Mistake(
                "a Python number",
                "you returned a Python number. gather fails on it, and it has no gradient.",
                "jwyang/faster-rcnn.pytorch issue 405, 2018",
                answers=(_number,),
            ),
        ),
    ),
    Exercise(
        key="06.sizes",
        task="Rows for each of `gpus` GPUs: `first` for the first, but at most `rows // gpus`; the others share the "
        "rest, longer parts first.",
        reference=sizes,
        cases=_size_cases,
        hints=(
            "Three cases: one GPU, a batch that is large enough, a batch that is not.",
            "`min(first, rows // gpus)` for the first; `divmod` of what remains tells size and number of longer parts.",
            "`size, left_over = divmod(rows - own, gpus - 1)`, and part k of the others has `size + (k < left_over)`.",
        ),
        mistakes=(
            Mistake(
                "falls back",
                "where the first GPU would not get fewer, you fell back to torch's rule: it makes fewer parts than "
                "there are GPUs, 9 rows on 4 are [3, 3, 3].",
                "Link-Li/Balanced-DataParallel issue 2, 2020",
                answers=(_falls_back,),
            ),
            Mistake(
                "first come what may",
                "you gave the first GPU `first` rows whatever the batch, so that a short last batch fills it first.",
                "a fixed list of chunk sizes and a batch of another length: princeton-vl/CornerNet issue 108, 2019",
                answers=(_always_first,),
            ),
        ),
    ),
    Exercise(
        key="06.first_rows",
        task="The number of rows for the first GPU, 0 to `rows // gpus`, with which the fullest of `gpus` GPUs holds "
        "least: `row` bytes for each row it computes, and `extra` on the first. Of equals the largest.",
        reference=first_rows,
        cases=_row_cases,
        hints=(
            "Write the peak of the fullest GPU as a function of `first`.",
            "The first GPU holds `extra + own * row`, the others their rows times `row`. A row taken from the first "
            "goes to one of the others.",
            "Try all from `rows // gpus` down to 0 and take the one with the lowest peak.",
        ),
        mistakes=(
            Mistake(
                "as few as possible",
                "you gave the first GPU as few rows as possible. The others take over what it loses, and are the full "
                "ones now.",
                "gpu0_bsz 1 of a batch of 158 in Link-Li/Balanced-DataParallel issue 13, 2021; 0 in issue 8, 2020",
                answers=(_one, _none),
            ),
            Mistake(
                "even shares",
                "you gave all GPUs the same. That is what DataParallel does.",
                "the question of pytorch/pytorch issue 11730, 2018",
                answers=(_even,),
            ),
        ),
    ),
)
