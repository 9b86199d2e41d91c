"""Bytes that the fullest of `ranks` ranks needs in a step of AdamW in float32, activations not counted: its rows of all
weights with their gradients and the optimizer's two numbers for each, and the largest layer, whole, with its whole
gradient. `shapes` are the shapes of the weights, one for each layer.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong

hints = (
    "How many rows of a weight with 10 rows does rank 0 keep when there are 4 ranks?",
    "`chunk` rounds up: 3. Four numbers are kept for every weight in those rows: the weight itself, its "
    "gradient and two of AdamW.",
    "Add the numbers of the largest whole weight twice, and multiply everything by 4 bytes.",
)


def fullest_rank(shapes: Sequence[tuple[int, int]], ranks: int) -> int:
    kept = sum(-(-rows // ranks) * columns for rows, columns in shapes)
    largest = max(rows * columns for rows, columns in shapes)
    return 4 * (4 * kept + 2 * largest)


def _near_an_even_share(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    """Divided evenly, with any rounding."""
    pairs = zip(cases, given, strict=True)
    return all(abs(mine - exact_share(*case.args)) <= 16 * len(case.args[0]) for case, mine in pairs)


def cases(random: Random) -> Sequence[Case]:
    fixed = [([(512, 512)] * 8, 4), ([(10, 3), (4, 10)], 4), ([(1000, 16), (16, 16), (2, 16)], 8)]
    drawn = []
    for _ in range(20):
        shapes = [(random.randint(1, 40), random.randint(1, 40)) for _ in range(random.randint(1, 5))]
        drawn.append((shapes, random.randint(2, 8)))
    return [Case(arguments) for arguments in [*fixed, *drawn]]


@wrong
def nothing_whole(shapes: Sequence[tuple[int, int]], ranks: int) -> int:
    """these are the bytes without the layer that computes. It needs its weight whole, and it makes a whole gradient.

    Source: memory that did not fall as expected in facebookresearch/fairscale issue 1050, 2022
    """
    return 16 * sum(-(-rows // ranks) * columns for rows, columns in shapes)


@wrong
def all_layers_whole(shapes: Sequence[tuple[int, int]], ranks: int) -> int:
    """these are the bytes of layers that are all whole at the same time, as under a single `fully_shard(net)`.

    Source: a run without a wrapping policy in huggingface/accelerate issue 3474, 2025
    """
    kept = sum(-(-rows // ranks) * columns for rows, columns in shapes)
    return 4 * (4 * kept + 2 * sum(rows * columns for rows, columns in shapes))


@wrong(recognise=_near_an_even_share)
def the_average_rank(shapes: Sequence[tuple[int, int]], ranks: int) -> int:
    """these are the bytes of numbers that are divided evenly, as FSDP1 did with all numbers of a layer in a row. Here
    whole rows are dealt out, and the first ranks get the larger share.

    Source: weights whose rows the ranks do not divide in pytorch/pytorch issue 136228, 2024
    """
    numbers = [rows * columns for rows, columns in shapes]
    return 4 * (4 * (sum(numbers) // ranks) + 2 * max(numbers))


@also(the_average_rank)
def exact_share(shapes: Sequence[tuple[int, int]], ranks: int) -> float:
    numbers = [rows * columns for rows, columns in shapes]
    return 4 * (4 * sum(numbers) / ranks + 2 * max(numbers))


@also(the_average_rank)
def each_divided(shapes: Sequence[tuple[int, int]], ranks: int) -> int:
    numbers = [rows * columns for rows, columns in shapes]
    return 4 * (4 * sum(number // ranks for number in numbers) + 2 * max(numbers))


@also(the_average_rank)
def flat_shards(shapes: Sequence[tuple[int, int]], ranks: int) -> int:
    """The rule of FSDP1: all numbers of a layer in a row, and the last rank padded."""
    numbers = [rows * columns for rows, columns in shapes]
    return 4 * (4 * sum(-(-number // ranks) for number in numbers) + 2 * max(numbers))


@wrong
def rounded_down(shapes: Sequence[tuple[int, int]], ranks: int) -> int:
    """these are the bytes when the rows of a rank are rounded down. `chunk` rounds up: of 10 rows the first of four
    ranks gets 3.
    """
    kept = sum(rows // ranks * columns for rows, columns in shapes)
    return 4 * (4 * kept + 2 * max(rows * columns for rows, columns in shapes))


@wrong
def no_whole_gradient(shapes: Sequence[tuple[int, int]], ranks: int) -> int:
    """these are the bytes without one gradient: backward makes the gradient of the whole layer, and only then are its
    parts dealt out. For that moment the weight and its gradient are both there, whole.
    """
    kept = sum(-(-rows // ranks) * columns for rows, columns in shapes)
    return 4 * (4 * kept + max(rows * columns for rows, columns in shapes))


@wrong
def twelve_bytes(shapes: Sequence[tuple[int, int]], ranks: int) -> int:
    """these are 12 bytes for every weight. The weight, its gradient and AdamW's two numbers are four times 4 bytes,
    16.
    """
    kept = sum(-(-rows // ranks) * columns for rows, columns in shapes)
    return 4 * (3 * kept + 2 * max(rows * columns for rows, columns in shapes))
