"""Exercises of notebook 07: who judges which picture, the loss on a rank, when to synchronise, one metric of all."""

from collections.abc import Sequence
from random import Random
from typing import Any

from course.learn.exercise import Case, Exercise, Mistake


def pictures_of_rank(pictures: int, rank: int, world_size: int) -> list[int]:
    return list(range(rank, pictures, world_size))


def _padded(pictures: int, rank: int, world_size: int) -> list[int]:
    """`DistributedSampler(shuffle=False)`: the first pictures again, until all ranks have as many."""
    each = -(-pictures // world_size)
    return [k % pictures for k in range(rank, each * world_size, world_size)]


def _cut_off(pictures: int, rank: int, world_size: int) -> list[int]:
    each = pictures // world_size
    return list(range(rank, each * world_size, world_size))


def _whole_blocks(pictures: int, rank: int, world_size: int) -> list[int]:
    each = pictures // world_size
    return list(range(rank * each, (rank + 1) * each))


def _share_cases(random: Random) -> Sequence[Case]:
    sizes = [(10, 4), (9, 2), (8, 2), *((random.randint(5, 40), random.randint(2, 5)) for _ in range(6))]
    return [Case((pictures, rank, ranks)) for pictures, ranks in sizes for rank in range(ranks)]


def loss_of_rank(own_losses: Sequence[float], counts: Sequence[int]) -> float:
    return sum(own_losses) * len(counts) / max(sum(counts), 1)


def _own_mean(own_losses: Sequence[float], counts: Sequence[int]) -> float:
    return sum(own_losses) / max(len(own_losses), 1)


def _not_times_ranks(own_losses: Sequence[float], counts: Sequence[int]) -> float:
    return sum(own_losses) / max(sum(counts), 1)


def _loss_cases(random: Random) -> Sequence[Case]:
    cases = [Case(([2.0, 4.0, 6.0], [3, 1])), Case(([6.0], [3, 1])), Case(([], [0, 4])), Case(([], [0, 0]))]
    for _ in range(8):
        counts = [random.randint(0, 6) for _ in range(random.randint(2, 4))]
        cases.append(Case(([float(random.randint(1, 9)) for _ in range(counts[0])], counts)))
    return cases


def _close(given: Any, expected: float) -> bool:
    return isinstance(given, int | float) and abs(given - expected) <= 1e-9 * max(1.0, abs(expected))


def synchronises(step: int, micro_batches: int, steps: int) -> bool:
    return (step + 1) % micro_batches == 0 or step + 1 == steps


def _sync_cases(random: Random) -> Sequence[Case]:
    lengths = [(2, 4), (4, 8), (3, 7), (1, 3), *((random.randint(2, 6), random.randint(7, 15)) for _ in range(5))]
    return [Case((step, every, steps)) for every, steps in lengths for step in range(steps)]


def merge_judged(parts: Sequence[Sequence[tuple[int, float]]]) -> list[tuple[int, float]]:
    first: dict[int, float] = {}
    for part in parts:
        for picture, score in part:
            first.setdefault(picture, score)
    return sorted(first.items())


def _all_of_them(parts: Sequence[Sequence[tuple[int, float]]]) -> list[tuple[int, float]]:
    return sorted(pair for part in parts for pair in part)


def _cut_the_end(parts: Sequence[Sequence[tuple[int, float]]]) -> list[tuple[int, float]]:
    """As many as there are pictures, from the ranks' lists laid end to end instead of dealt out in turn."""
    joined = [pair for part in parts for pair in part]
    return sorted(joined[: len({picture for picture, _ in joined})])


def _merge_cases(random: Random) -> Sequence[Case]:
    cases = []
    for pictures, ranks in [
        (3, 2),
        (5, 2),
        (10, 4),
        *((random.randint(3, 20), random.randint(2, 5)) for _ in range(6)),
    ]:
        score = [random.randint(0, 9) / 10 for _ in range(pictures)]
        parts = [[(k, score[k]) for k in _padded(pictures, rank, ranks)] for rank in range(ranks)]
        cases.append(Case((parts,)))
    return cases


EXERCISES = (
    Exercise(
        key="07.pictures_of_rank",
        task="The numbers of the pictures that `rank` judges, so that every one of `pictures` is judged exactly once: "
        "rank 0 the first, rank 1 the second, and in turn from there.",
        reference=pictures_of_rank,
        cases=_share_cases,
        hints=(
            "Ranks need not have as many: there is no collective in the loop of an evaluation.",
            "Begin with the rank and go on in steps of the world size.",
            "`list(range(rank, pictures, world_size))`",
        ),
        mistakes=(
            Mistake(
                "padded",
                "you gave every rank as many pictures, so that some are judged twice: the rule of DistributedSampler.",
                "pytorch/pytorch issue 25162, 2019; roboflow/rf-detr issue 1507, 2026",
                answers=(_padded,),
            ),
            Mistake(
                "cut off",
                "you left out what does not divide evenly: the last pictures are never judged.",
                "drop_last=True in validation, pytorch/examples issue 1063, 2022",
                answers=(_cut_off, _whole_blocks),
            ),
        ),
    ),
    Exercise(
        key="07.loss_of_rank",
        task="The number that this rank calls backward() on under DDP, from its own losses and the count of every "
        "rank, so that the gradients are those of the mean over all; 0 where nothing was counted.",
        reference=loss_of_rank,
        cases=_loss_cases,
        agree=_close,
        hints=(
            "One process would divide the sum over all by the count of all. What can a rank contribute to it?",
            "Its own sum over everybody's count. DDP then divides by the number of ranks: undo that beforehand.",
            "`sum(own_losses) * len(counts) / max(sum(counts), 1)`",
        ),
        mistakes=(
            Mistake(
                "own mean",
                "you divided by this rank's own count. A row on a rank with few of them then weighs more.",
                "open-mmlab/mmdetection issue 2933, 2020: about 1 mAP between 4 and 8 GPUs",
                answers=(_own_mean,),
            ),
            Mistake(
                "not times the ranks",
                "you divided by the count of all and left it at that. DDP averages, so the gradients come out too "
                "small by the number of ranks.",
                "what meta-pytorch/torchtune pull request 2172, 2024, repairs",
                answers=(_not_times_ranks,),
            ),
        ),
    ),
    Exercise(
        key="07.synchronises",
        task="Whether micro-batch number `step` (from 0) of an epoch of `steps` ends in an optimizer step, and so must "
        "synchronise: every `micro_batches`-th, and the last one of the epoch.",
        reference=synchronises,
        cases=_sync_cases,
        hints=(
            "With 4 micro-batches these are numbers 3, 7, 11, ...",
            "The epoch need not end on one of them: its last micro-batch would be lost.",
            "`(step + 1) % micro_batches == 0 or step + 1 == steps`",
        ),
        mistakes=(
            Mistake(
                "the rest is lost",
                "you forgot the end of the epoch: what was accumulated after the last full group is never applied.",
                "timoschick/pet issue 36, 2021",
                answers=(lambda step, micro_batches, steps: (step + 1) % micro_batches == 0,),
            ),
        ),
    ),
    Exercise(
        key="07.merge_judged",
        task="One sorted list of (picture, score) from the lists that the ranks gathered, each picture once, also "
        "where a sampler has handed some out twice.",
        reference=merge_judged,
        cases=_merge_cases,
        hints=(
            "The number of the picture tells what is there already.",
            "A dict from picture to score; the first rank to report one owns it.",
            "`first.setdefault(picture, score)` for every pair, then `sorted(first.items())`",
        ),
        mistakes=(
            Mistake(
                "duplicates counted",
                "you joined the lists as they are: pictures that the sampler repeated count twice.",
                "roboflow/rf-detr issue 1507, 2026",
                answers=(_all_of_them,),
            ),
            Mistake(
                "cut at the end",
                "you cut the joined list to the number of pictures. The copies do not stand at its end, since each "
                "rank has its own; what you cut off are pictures.",
                "the cut in huggingface/accelerate issue 350, 2022, where the copies do stand at the end",
                answers=(_cut_the_end,),
            ),
        ),
    ),
)
