"""The number on which process `rank` calls backward() so that DDP's average of the gradients is that of sum(sums) /
sum(counts), and 0 where no process has counted anything.
"""

from collections.abc import Sequence
from random import Random

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb03.cases import close

hints = (
    "Gradients are linear: DDP gives the gradient of the *mean* of what the processes call backward() on.",
    "That mean must be sum(sums) / sum(counts); each process can offer only its own sum. What undoes the mean?",
    "`len(sums) * sums[rank] / sum(counts)`, with the count kept from being 0: `max(sum(counts), 1)`.",
)


def rank_loss(sums: Sequence[float], counts: Sequence[float], rank: int) -> float:
    return len(sums) * sums[rank] / max(sum(counts), 1)


def cases(random: Random) -> Sequence[Case]:
    """Ranks that have counted nothing are at any place, and the question is about one that has counted, or has not."""
    fixed: list[tuple[list[float], list[int], int]] = [([6.0, 2.0], [3, 1], 1), ([6.0, 0.0], [4, 0], 0)]
    fixed += [([6.0, 0.0], [4, 0], 1), ([3.0, 0.0, 0.0, 0.0], [1, 0, 0, 0], 0)]
    fixed += [([0.0, 0.0], [0, 0], 0), ([9.0, 3.0, 1.0], [3, 2, 1], 0)]
    cases = [Case(arguments) for arguments in fixed]
    for k in range(20):
        ranks = random.randint(2, 8)
        counts = [random.randint(0, 40 if k % 2 else 2) for _ in range(ranks)]
        sums = [count * random.uniform(0.1, 3) for count in counts]
        cases.append(Case((sums, counts, random.randrange(ranks))))
    return cases


agree = close


@wrong
def its_own_mean(sums: Sequence[float], counts: Sequence[float], rank: int) -> float:
    """this is what comes out when the process's own count divides. A row or token on a process with few of them then
    weighs more than one on a process with many.

    Source: huggingface/transformers issue 34242, 2024
    """
    return sums[rank] / max(counts[rank], 1)


@also(its_own_mean)
def own_mean_and_a_small_number(sums: Sequence[float], counts: Sequence[float], rank: int) -> float:
    return sums[rank] / (counts[rank] + 1e-4)


@wrong
def its_own_mean_scaled(sums: Sequence[float], counts: Sequence[float], rank: int) -> float:
    """this is what comes out when the process's own count divides and DDP's average is undone. The processes' means
    then add up to their sum; divide by the count of *all* processes instead.
    """
    return len(sums) * sums[rank] / max(counts[rank], 1)


@wrong
def forgets_the_average(sums: Sequence[float], counts: Sequence[float], rank: int) -> float:
    """this is what comes out when the count of all divides and nothing else is done. DDP will divide by the number of
    processes as well, so the gradient is too small by that factor.

    Source: asked about in facebookresearch/fairseq issue 494, 2019; repaired in meta-pytorch/torchtune pull request
    2172, 2024
    """
    return sums[rank] / max(sum(counts), 1)


@wrong
def the_sum_of_all(sums: Sequence[float], counts: Sequence[float], rank: int) -> float:
    """this is what comes of the sums of all processes. What a different process has computed arrives here as a number
    without a graph, so it has no gradient here. Each process offers its own sum, and DDP joins them.

    Source: the loss is reduced over all processes before backward in sanderwood/bgpt issue 5, 2024
    """
    return sum(sums) / max(sum(counts), 1)


@also(the_sum_of_all)
def sum_of_all_scaled(sums: Sequence[float], counts: Sequence[float], rank: int) -> float:
    return len(sums) * the_sum_of_all(sums, counts, rank)


@wrong
def adds_a_small_number_to_the_count(sums: Sequence[float], counts: Sequence[float], rank: int) -> float:
    """this is what comes out when a small number is added to the count. It prevents a division by 0 and makes all
    losses a little too small. `max(count, 1)` changes nothing where something was counted.

    Source: `/ (fg_cnt + 1e-4)` in a guide to Faster R-CNN on several GPUs, 2017
    """
    return len(sums) * sums[rank] / (sum(counts) + 1e-4)


@wrong
def at_least_one_for_each(sums: Sequence[float], counts: Sequence[float], rank: int) -> float:
    """this is what comes out when each process counts at least 1. A process that has counted nothing then makes
    everybody's loss smaller: keep the *sum* of the counts from being 0, and no count by itself.
    """
    return len(sums) * sums[rank] / sum(max(count, 1) for count in counts)


@wrong
def at_least_one_after_the_division(sums: Sequence[float], counts: Sequence[float], rank: int) -> float:
    """this is what comes out when the count *for each process* is kept from being less than 1. It is right as long as
    there is one thing to count for each process, and too small a loss with fewer.

    Source: `torch.clamp(num_boxes / get_world_size(), min=1)`, facebookresearch/detr, `models/detr.py`, 2020
    """
    return sums[rank] / max(sum(counts) / len(counts), 1)


@wrong
def only_those_that_count(sums: Sequence[float], counts: Sequence[float], rank: int) -> float:
    """this is what comes out when DDP's average is undone by the number of processes that have counted something. DDP
    divides by the number of *all* processes.
    """
    return sum(count > 0 for count in counts) * sums[rank] / max(sum(counts), 1)
