"""A GPU has `limit` bytes. Under DDP each of `ranks` GPUs holds the weights (`weights` bytes), their gradients twice,
`states` numbers for each weight, and `row` bytes for each of its rows. Return how many rows all ranks have together.
"""

from collections.abc import Sequence
from random import Random

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong

hints = (
    "What does one GPU hold before it has any row? DDP copies the model to every rank.",
    "The weights, twice the gradients, and `states` more of the same size: `weights * (3 + states)`.",
    "`max(0, limit - weights * (3 + states)) // row * ranks`",
)


def rows_that_fit(limit: int, weights: int, states: int, row: int, ranks: int) -> int:
    return max(0, limit - weights * (3 + states)) // row * ranks


def cases(random: Random) -> Sequence[Case]:
    """A model that fits, one that does not, and numbers that leave a part of a row."""
    fixed = [(100, 10, 2, 7, 1), (100, 10, 2, 7, 4), (100, 10, 0, 9, 2), (100, 25, 2, 5, 4), (90, 15, 1, 40, 8)]
    drawn = [
        (
            random.randint(200, 900),
            random.randint(5, 40),
            random.randint(0, 2),
            random.randint(3, 30),
            random.choice((2, 4, 8)),
        )
        for _ in range(20)
    ]
    return [Case(numbers) for numbers in [*fixed, *drawn]]


@wrong
def the_rows_of_one_rank(limit: int, weights: int, states: int, row: int, ranks: int) -> int:
    """these are the rows of one rank. Under DDP the batch of a loader is the batch of one rank, and all ranks together
    have as many times that as there are ranks.
    """
    return max(0, limit - weights * (3 + states)) // row


@wrong
def weights_divided(limit: int, weights: int, states: int, row: int, ranks: int) -> int:
    """this shares the model out among the ranks. DDP gives each of them the whole; sharding is what divides it."""
    return int(max(0, limit - weights * (3 + states) / ranks) // row) * ranks


@wrong
def without_gradients(limit: int, weights: int, states: int, row: int, ranks: int) -> int:
    """this leaves the gradients out. They are as large as the weights, and under DDP they are there twice."""
    return max(0, limit - weights * (1 + states)) // row * ranks


@wrong
def without_the_copy(limit: int, weights: int, states: int, row: int, ranks: int) -> int:
    """this counts the gradients once. DDP has a second copy of them, the buckets in which they travel."""
    return max(0, limit - weights * (2 + states)) // row * ranks


@wrong
def without_the_optimizer(limit: int, weights: int, states: int, row: int, ranks: int) -> int:
    """this leaves the optimizer out, which keeps `states` numbers for each weight."""
    return max(0, limit - weights * 3) // row * ranks


@wrong
def in_one_memory(limit: int, weights: int, states: int, row: int, ranks: int) -> int:
    """this divides the memory of all GPUs by the bytes of a row. A row is computed on one GPU, so what is left over on
    each cannot be added up.
    """
    return max(0, limit - weights * (3 + states)) * ranks // row
