"""How much each of `rows` rows weighs in the mean of the GPUs' mean losses, in order, as a list."""

from collections.abc import Sequence
from random import Random

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong
from course.lessons.nb03.cases import close
from frcnn_lite.parallel import chunk_sizes

hints = (
    "`parallel.chunk_sizes(rows, gpus)` tells how many rows sit on each GPU that has any.",
    "Within a chunk a row weighs 1 / size; the chunks are then averaged. Over how many of them?",
    "1 / (number of chunks * size of the row's own chunk).",
)


def row_weights(rows: int, gpus: int) -> list[float]:
    sizes = chunk_sizes(rows, gpus)
    return [1 / (len(sizes) * size) for size in sizes for _ in range(size)]


def cases(random: Random) -> Sequence[Case]:
    fixed = [(10, 4), (10, 2), (9, 2), (9, 4), (10, 8)]
    return [Case(pair) for pair in fixed + [(random.randint(1, 40), random.randint(1, 8)) for _ in range(30)]]


agree = close


@wrong
def all_rows_alike(rows: int, gpus: int) -> list[float]:
    """this is the same weight for every row. That is what one wants; the mean of means does it only where all chunks
    are of one size.

    Source: the warning about scalars is called OK in airsplay/lxmert issue 17, 2019
    """
    return [1 / rows] * rows


@wrong
def divides_by_the_GPUs(rows: int, gpus: int) -> list[float]:
    """this is what comes out when the number of GPUs divides. The vector that gather returns has one entry for each
    replica that *ran*: 9 rows on 4 GPUs make 3.

    Source: as many parts as GPUs: the post of December 2021 in notebook 01's "Further reading"
    """
    return [1 / (gpus * size) for size in chunk_sizes(rows, gpus) for _ in range(size)]


@wrong
def within_its_GPU(rows: int, gpus: int) -> list[float]:
    """this is the weight of a row in the mean of its own GPU. Of these means the mean is taken once more, so each is
    divided by the number of replicas that ran. All weights together make 1.
    """
    return [1 / size for size in chunk_sizes(rows, gpus) for _ in range(size)]
