"""The poly rate of every group at a step, as a list: defined for any number of groups and for any step."""

from collections.abc import Sequence
from random import Random

from course.kit.learn.agree import near
from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong

hints = (
    "What is `(-0.01) ** 0.9` in Python? Print it.",
    "Cut the base off at zero before the power, not the result after it.",
    "`left = max(0.0, 1 - step / total)`, then `[lr * m * left**0.9 for m in multipliers]`",
)


def poly_rates(lr: float, multipliers: Sequence[float], step: int, total: int) -> list[float]:
    """The rate of every group at `step`: its multiplier times lr times (1 - step / total) ** 0.9, and 0 after that."""
    left = max(0.0, 1 - step / total)
    return [lr * multiplier * left**0.9 for multiplier in multipliers]


def cases(random: Random) -> Sequence[Case]:
    fixed = [(0.1, [1.0, 10.0], 0, 100), (0.1, [1.0, 10.0, 2.0], 50, 100), (0.1, [1.0, 10.0], 101, 100)]
    for _ in range(12):
        groups = [float(random.randint(1, 20)) for _ in range(random.randint(1, 5))]
        total = random.randint(10, 200)
        fixed.append((random.choice([0.01, 0.1, 1.0]), groups, random.randint(0, 2 * total), total))
    return [Case(arguments) for arguments in fixed]


agree = near


@wrong
def two_groups_at_most(lr: float, multipliers: Sequence[float], step: int, total: int) -> list[float]:
    """these are the rates of a function that looks for exactly two groups. With three, all but the first keep the rate
    they started with, and nothing says so.

    Source: an engineer's notes on PyTorch, March 2021
    """
    if len(multipliers) <= 2:
        return poly_rates(lr, multipliers, step, total)
    return [*poly_rates(lr, multipliers[:1], step, total), *(lr * multiplier for multiplier in multipliers[1:])]


@wrong
def complex_after_the_end(lr: float, multipliers: Sequence[float], step: int, total: int) -> list[complex]:
    """this is a negative number to the power 0.9. Python answers with a complex learning rate.

    Source: VainF/DeepLabV3Plus-Pytorch issue 59, 2021: a resumed run with more iterations
    """
    return [lr * multiplier * (1 - step / total) ** 0.9 for multiplier in multipliers]
