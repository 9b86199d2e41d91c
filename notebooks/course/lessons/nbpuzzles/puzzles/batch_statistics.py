"""Every rank has rows of its own, of shape (rows, features), and not equally many. Return the mean and the variance
(divided by the number of rows) of each feature over the rows of all ranks, as SyncBatchNorm needs them. Target: one
collective.
"""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor, distributed

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong
from course.lessons.nbpuzzles.costs import OnRanks, right_and_cheap, right_but_dear

hints = (
    "Which sums over all rows are enough to compute both?",
    "Three: the number of rows, the sum of the rows, and the sum of their squares.",
    "`sums = torch.cat([x.sum(0), x.square().sum(0), x.new_tensor([len(x)])])`, one `all_reduce`; the variance is the "
    "mean of the squares less the square of the mean.",
)


def cases(random: Random) -> Sequence[Case]:
    torch.manual_seed(random.randrange(2**31))
    rows = [(4, 4), (random.randint(2, 9), 7), (random.randint(10, 19), 1)]
    return [OnRanks(([torch.randn(a, 3) + 1, torch.randn(b, 3)],)) for a, b in rows]


def batch_statistics(x: Tensor) -> tuple[Tensor, Tensor]:
    sums = torch.cat([x.sum(0), x.square().sum(0), x.new_tensor([len(x)])])
    distributed.all_reduce(sums)
    mean, square = (sums[:-1] / sums[-1]).chunk(2)
    return mean, square - mean.square()


agree = right_and_cheap


@wrong(recognise=lambda cases, given: right_but_dear(cases, given, batch_statistics))
def mean_before_variance(x: Tensor) -> tuple[Tensor, Tensor]:
    """both are right, and it took more than one collective. The variance need not wait for the mean: sums of squares
    can travel beside the sums.
    """
    sums = torch.cat([x.sum(0), x.new_tensor([len(x)])])
    distributed.all_reduce(sums)
    mean = sums[:-1] / sums[-1]
    squares = (x - mean).square().sum(0)
    distributed.all_reduce(squares)
    return mean, squares / sums[-1]


@wrong
def average_of_the_ranks(x: Tensor) -> tuple[Tensor, Tensor]:
    """these are averages of what each rank computed alone. Ranks with few rows count as much in them as ranks with
    many, and how far the means of the ranks are apart is missing in the variance.
    """
    both = torch.stack([x.mean(0), x.var(0, correction=0)])
    distributed.all_reduce(both)
    mean, variance = both / distributed.get_world_size()
    return mean, variance


@also(average_of_the_ranks)
def average_of_means_and_squares(x: Tensor) -> tuple[Tensor, Tensor]:
    both = torch.stack([x.mean(0), x.square().mean(0)])
    distributed.all_reduce(both)
    mean, square = both / distributed.get_world_size()
    return mean, square - mean.square()


@wrong
def one_row_less(x: Tensor) -> tuple[Tensor, Tensor]:
    """the sum of squares is divided by one row less. Batch normalisation divides by the number of rows; its *running*
    variance alone is divided by one less.
    """
    mean, variance = batch_statistics(x)
    rows = x.new_tensor(len(x))
    distributed.all_reduce(rows)
    return mean, variance * rows / (rows - 1)
