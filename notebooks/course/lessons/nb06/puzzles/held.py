"""Bytes on each GPU when the outputs have been gathered: `rows[k]` rows on GPU k, `row` bytes for each row on the GPU
that computes it, `output` bytes of a row that `forward` returns, a model of `weights` bytes, an optimizer with
`states` numbers for each weight. Gradients are None, and the batch is not counted.
"""

from collections.abc import Sequence
from random import Random

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong

hints = (
    "Go through the legend of the chart, kind by kind. On which GPUs does it lie after `scores gathered`?",
    "Every GPU has a copy of the weights and its own rows. Only GPU 0 has the optimizer's state and the "
    "outputs of all rows.",
    "`weights + rows[k] * row` for each, and `states * weights + sum(rows) * output` more on GPU 0.",
)


def held(rows: list[int], row: int, output: int, weights: int, states: int) -> list[int]:
    found = [weights + count * row for count in rows]
    found[0] += states * weights + sum(rows) * output
    return found


def cases(random: Random) -> Sequence[Case]:
    fixed = [([4, 20, 20, 20], 30, 10, 96, 1), ([15, 15, 15, 15], 10, 40, 60, 2), ([4, 20, 20, 20], 30, 1, 96, 0)]
    drawn = [
        (
            [random.randint(1, 32) for _ in range(random.randint(2, 8))],
            random.randint(1, 50),
            random.randint(1, 50),
            840 * random.randint(1, 9),
            random.randint(0, 2),
        )
        for _ in range(15)
    ]
    return [Case(arguments) for arguments in fixed + drawn]


@wrong
def without_what_is_gathered(rows: list[int], row: int, output: int, weights: int, states: int) -> list[int]:
    """these are the bytes without what `gather` makes: the outputs of all rows once more, on GPU 0.

    Source: the question of huggingface/transformers issue 279, 2019
    """
    return held(rows, row, 0, weights, states)


@wrong
def without_the_optimizer(rows: list[int], row: int, output: int, weights: int, states: int) -> list[int]:
    """these are the bytes without what the optimizer keeps, for Adam twice the size of the weights.

    Source: an answer in codertimo/BERT-pytorch issue 10, 2018
    """
    return held(rows, row, output, weights, 0)


@wrong
def split_evenly(rows: list[int], row: int, output: int, weights: int, states: int) -> list[int]:
    """these are the bytes of a model that is split over the GPUs. DataParallel splits rows; weights it copies whole,
    for one step.
    """
    found = held(rows, row, output, weights, states)
    return [size - weights + weights // len(rows) for size in found]


@wrong
def an_optimizer_on_every_GPU(rows: list[int], row: int, output: int, weights: int, states: int) -> list[int]:
    """these are the bytes of GPUs that have an optimizer's state each, as under DistributedDataParallel. Replicas live
    for one step, and the only optimizer belongs to the weights on GPU 0.
    """
    first, *others = held(rows, row, output, weights, states)
    return [first, *(size + states * weights for size in others)]


@wrong
def moved_not_copied(rows: list[int], row: int, output: int, weights: int, states: int) -> list[int]:
    """these are the bytes of outputs that are moved. `gather` writes all rows into a new tensor, those of GPU 0 as
    well, and the outputs of the replicas are still there.
    """
    first, *others = held(rows, row, output, weights, states)
    return [first - rows[0] * output, *others]


@also(moved_not_copied)
def moved(rows: list[int], row: int, output: int, weights: int, states: int) -> list[int]:
    return [size - own * output for size, own in zip(held(rows, row, output, weights, states), rows, strict=True)]


@wrong
def no_copies_of_the_weights(rows: list[int], row: int, output: int, weights: int, states: int) -> list[int]:
    """these are the bytes of GPUs of which the first alone has the weights. Each replica has a copy of all of them
    until backward is over.
    """
    first, *others = held(rows, row, output, weights, states)
    return [first, *(size - weights for size in others)]


@wrong
def gradients(rows: list[int], row: int, output: int, weights: int, states: int) -> list[int]:
    """these are the bytes with the size of the weights once more, on GPU 0 or on all. A copy of them is on the other
    GPUs only, since the replica of GPU 0 uses the weights themselves. And there are no gradients at this moment:
    `zero_grad()` has made them None, and backward has not begun.
    """
    first, *others = held(rows, row, output, weights, states)
    return [first + weights, *others]


@also(gradients)
def gradients_everywhere(rows: list[int], row: int, output: int, weights: int, states: int) -> list[int]:
    return [size + weights for size in held(rows, row, output, weights, states)]
