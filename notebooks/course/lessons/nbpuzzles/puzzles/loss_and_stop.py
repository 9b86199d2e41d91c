"""Every rank has the sum of its losses, their count, and whether it wants to stop. Return on every rank the mean loss
over all ranks, a tensor, and True if any rank wants to stop. Target: one collective.
"""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor, distributed

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong
from course.lessons.nbpuzzles.costs import OnRanks, right_and_cheap, right_but_dear

hints = (
    "Three numbers fit into one tensor. Which of them may be added up over the ranks?",
    "All three: a sum of wishes above 0 says that at least one rank wants to stop.",
    "`numbers = torch.stack([total, count, count.new_tensor(stop)])`, and one `all_reduce(numbers)`.",
)


def cases(random: Random) -> Sequence[Case]:
    drawn = []
    for stops in ((False, False), (False, True), (True, True)):
        totals = [torch.tensor(random.uniform(1, 9)) for _ in range(2)]
        counts = [torch.tensor(float(random.randint(1, 9) + 10 * rank)) for rank in range(2)]
        drawn.append(OnRanks((totals, counts, stops)))
    return drawn


def loss_and_stop(total: Tensor, count: Tensor, stop: bool) -> tuple[Tensor, bool]:
    numbers = torch.stack([total, count, count.new_tensor(stop)])
    distributed.all_reduce(numbers)
    return numbers[0] / numbers[1], bool(numbers[2] > 0)


agree = right_and_cheap


@wrong(recognise=lambda cases, given: right_but_dear(cases, given, loss_and_stop))
def three_calls(total: Tensor, count: Tensor, stop: bool) -> tuple[Tensor, bool]:
    """both answers are right, and there is more than one collective. Each of them makes every rank wait for the
    slowest one.
    """
    wish = count.new_tensor(stop)
    for number in (total, count, wish):
        distributed.all_reduce(number)
    return total / count, bool(wish > 0)


@wrong
def mean_of_means(total: Tensor, count: Tensor, stop: bool) -> tuple[Tensor, bool]:
    """this is the mean of the means of the ranks. A rank with few losses counts as much in it as one with many. Add up
    sums and counts, and divide once, as notebook 03 shows.
    """
    numbers = torch.stack([total / count, count.new_tensor(stop)])
    distributed.all_reduce(numbers)
    return numbers[0] / distributed.get_world_size(), bool(numbers[1] > 0)
