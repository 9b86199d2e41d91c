"""From (name, size) pairs: the total size of those not chosen, and the list of their names."""

from collections.abc import Sequence
from random import Random

from course.kit.learn.agree import same_values
from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong

hints = (
    "You need the rest twice: once to count, once to return.",
    "`filter(...)` and `(... for ...)` can be read once. What can be read twice?",
    "`rest = [pair for pair in sizes if pair[0] not in chosen]`",
)


def rest_of(sizes: Sequence[tuple[str, int]], chosen: set[str]) -> tuple[int, list[str]]:
    """How many numbers the parameters outside `chosen` hold, and their names in order."""
    rest = [(name, size) for name, size in sizes if name not in chosen]
    return sum(size for _, size in rest), [name for name, _ in rest]


def cases(random: Random) -> Sequence[Case]:
    """Names in no order of the alphabet, some of which begin with others."""
    layers = [("stem", 108), ("conv1", 432), ("conv12", 40), ("backbone", 7)]
    cases = [Case((layers, {"conv1"})), Case((layers, set())), Case((layers, {name for name, _ in layers}))]
    for _ in range(8):
        some = [(f"layer{k}", random.randint(1, 500)) for k in random.sample(range(1, 20), random.randint(2, 6))]
        cases.append(Case((some, {random.choice(some)[0]})))
    return cases


agree = same_values


@wrong
def a_filter_read_twice(sizes: Sequence[tuple[str, int]], chosen: set[str]) -> tuple[int, list[str]]:
    """this is what a function gives that counts with a filter and then reads it again: the second time it is empty.

    Source: pytorch/pytorch issue 47594, 2020: SparseAdam checked its parameters and then had none
    """
    rest = filter(lambda pair: pair[0] not in chosen, sizes)
    return sum(size for _, size in rest), [name for name, _ in rest]
