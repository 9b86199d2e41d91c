"""`rate`, and the `milestones` at which it falls, were chosen for `old`, a pair (GPUs, rows on each). Return both for
`new`, by the linear rule. Milestones are numbers of updates, and each comes after as many rows as before.
"""

import math
from collections.abc import Sequence
from random import Random

from course.kit.learn.agree import near
from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong

hints = (
    "Both are about the rows of one update, on all GPUs together. How many were they, and how many are they now?",
    "`factor = (new[0] * new[1]) / (old[0] * old[1])`. With more rows in an update, an epoch has fewer updates.",
    "`return rate * factor, [milestone / factor for milestone in milestones]`",
)

Setting = tuple[int, int]
Moved = tuple[float, list[float]]


def moved(rate: float, milestones: Sequence[int], old: Setting, new: Setting) -> Moved:
    factor = (new[0] * new[1]) / (old[0] * old[1])
    return rate * factor, [milestone / factor for milestone in milestones]


def cases(random: Random) -> Sequence[Case]:
    fixed = [
        (0.02, [240, 480], (1, 16), (4, 16)),
        (0.02, [240], (8, 2), (4, 4)),
        (0.1, [96, 192], (8, 32), (2, 64)),
        (0.1, [], (1, 256), (8, 64)),
    ]
    for _ in range(12):
        old, new = ((2 ** random.randint(0, 3), 2 ** random.randint(0, 4)) for _ in range(2))
        drops = sorted(random.sample(range(1, 20), random.randint(1, 3)))
        fixed.append((random.choice([0.01, 0.1, 0.4]), [drop * 2**7 for drop in drops], old, new))
    return [Case(arguments) for arguments in fixed]


agree = near


def _by(rate: float, milestones: Sequence[int], scale: float, length: float) -> Moved:
    return rate * scale, [milestone / length for milestone in milestones]


def _factor(old: Setting, new: Setting) -> float:
    return (new[0] * new[1]) / (old[0] * old[1])


@wrong
def milestones_kept(rate: float, milestones: Sequence[int], old: Setting, new: Setting) -> Moved:
    """this is what a function gives that moves the rate and leaves the milestones where they were. With four times the
    rows in an update, a milestone at 240 comes four times as late, or after the end of the run.
    """
    return _by(rate, milestones, _factor(old, new), 1)


@wrong
def rate_kept(rate: float, milestones: Sequence[int], old: Setting, new: Setting) -> Moved:
    """this is what a function gives that moves the milestones and leaves the rate."""
    return _by(rate, milestones, 1, _factor(old, new))


@wrong
def milestones_the_wrong_way(rate: float, milestones: Sequence[int], old: Setting, new: Setting) -> Moved:
    """this is what a function gives that multiplies the milestones, too. More rows in an update make fewer updates."""
    return _by(rate, milestones, _factor(old, new), 1 / _factor(old, new))


@wrong
def GPUs_only(rate: float, milestones: Sequence[int], old: Setting, new: Setting) -> Moved:
    """this is what a function gives that counts the GPUs alone. The rows on each of them count as well.

    Source: open-mmlab/mmdetection pull request 1038, 2019
    """
    return _by(rate, milestones, new[0] / old[0], new[0] / old[0])


@wrong
def rows_per_GPU_only(rate: float, milestones: Sequence[int], old: Setting, new: Setting) -> Moved:
    """this is what a function gives that counts the rows of one GPU. An update is made of the rows of all of them.

    Source: an answer in PistonY/ModelZoo.pytorch issue 1, 2020
    """
    return _by(rate, milestones, new[1] / old[1], new[1] / old[1])


@wrong
def GPUs_twice(rate: float, milestones: Sequence[int], old: Setting, new: Setting) -> Moved:
    """this is what a function gives whose rate follows the number of GPUs twice, as if it had to make up for DDP's
    average. The average is the reason why the update is one over all rows.

    Source: facebookresearch/moco issue 98, 2021
    """
    return _by(rate, milestones, _factor(old, new) * new[0] / old[0], _factor(old, new))


@wrong
def square_root(rate: float, milestones: Sequence[int], old: Setting, new: Setting) -> Moved:
    """this is what a function gives that moves the rate by the square root. That is a different rule: it keeps the
    variance of an update, and the linear one keeps its mean.

    Source: Krizhevsky, One weird trick for parallelizing convolutional neural networks, arXiv 1404.5997, 2014
    """
    return _by(rate, milestones, math.sqrt(_factor(old, new)), _factor(old, new))
