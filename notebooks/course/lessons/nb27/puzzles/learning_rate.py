"""Learning rate by the linear rule, from `old` to `new`, each a pair (GPUs, rows per GPU)."""

import math
from collections.abc import Sequence
from random import Random

from course.kit.learn.agree import near
from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong

hints = (
    "The rule is about the minibatch: all rows that one update is made of.",
    "GPUs times rows per GPU, before and after.",
    "`rate * (new[0] * new[1]) / (old[0] * old[1])`",
)


def learning_rate(rate: float, old: tuple[int, int], new: tuple[int, int]) -> float:
    return rate * (new[0] * new[1]) / (old[0] * old[1])


def cases(random: Random) -> Sequence[Case]:
    fixed = [(0.02, (8, 2), (1, 2)), (0.02, (8, 2), (4, 4)), (0.1, (1, 256), (8, 256)), (0.1, (8, 32), (4, 64))]
    drawn = [
        (random.uniform(0.001, 0.1), (random.randint(1, 8), random.randint(1, 32)), (random.randint(1, 64), 2 * k + 1))
        for k in range(20)
    ]
    return [Case(arguments) for arguments in [*fixed, *drawn]]


agree = near


@wrong
def GPUs_only(rate: float, old: tuple[int, int], new: tuple[int, int]) -> float:
    """this rate follows the number of GPUs alone. The rows on each of them count as well.

    Source: open-mmlab/mmdetection pull request 1038, 2019
    """
    return rate * new[0] / old[0]


@wrong
def rows_per_GPU_only(rate: float, old: tuple[int, int], new: tuple[int, int]) -> float:
    """this rate follows the rows of one GPU. An update is made of the rows of all of them.

    Source: an answer in PistonY/ModelZoo.pytorch issue 1, 2020
    """
    return rate * new[1] / old[1]


@wrong
def GPUs_twice(rate: float, old: tuple[int, int], new: tuple[int, int]) -> float:
    """this rate follows the number of GPUs twice, as if it had to make up for DDP's average. The average is already
    what makes the update one over the total batch.

    Source: facebookresearch/moco issue 98, 2021
    """
    return learning_rate(rate, old, new) * new[0] / old[0]


@wrong
def square_root(rate: float, old: tuple[int, int], new: tuple[int, int]) -> float:
    """this is scaled by the square root. That is a different rule, which keeps the variance of an update; the linear
    one keeps its mean.

    Source: Krizhevsky, One weird trick for parallelizing convolutional neural networks, arXiv 1404.5997, 2014
    """
    return rate * math.sqrt(learning_rate(1.0, old, new))
