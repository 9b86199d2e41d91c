"""Exercises of notebook 27: rates of every group, a warm-up, a list that is read twice, the linear scaling rule."""

import math
from collections.abc import Sequence
from random import Random

from course.kit.learn.agree import near, same_values
from course.kit.learn.exercise import Case, Exercise, Mistake

POST = "an engineer's notes on PyTorch, March 2021"


def poly_rates(lr: float, multipliers: Sequence[float], step: int, total: int) -> list[float]:
    """The rate of every group at `step`: its multiplier times lr times (1 - step / total) ** 0.9, and 0 after that."""
    left = max(0.0, 1 - step / total)
    return [lr * multiplier * left**0.9 for multiplier in multipliers]


def factor(step: int, warmup: int, drops: Sequence[int], gamma: float) -> float:
    """(step + 1) / warmup while step < warmup; then gamma to the number of drops that are not after step."""
    if step < warmup:
        return (step + 1) / warmup
    return gamma ** sum(drop <= step for drop in drops)


def rest_of(sizes: Sequence[tuple[str, int]], chosen: set[str]) -> tuple[int, list[str]]:
    """How many numbers the parameters outside `chosen` hold, and their names in order."""
    rest = [(name, size) for name, size in sizes if name not in chosen]
    return sum(size for _, size in rest), [name for name, _ in rest]


def _two_groups_at_most(lr: float, multipliers: Sequence[float], step: int, total: int) -> list[float]:
    if len(multipliers) <= 2:
        return poly_rates(lr, multipliers, step, total)
    return [*poly_rates(lr, multipliers[:1], step, total), *(lr * multiplier for multiplier in multipliers[1:])]


def _unbounded(lr: float, multipliers: Sequence[float], step: int, total: int) -> list[complex]:
    return [lr * multiplier * (1 - step / total) ** 0.9 for multiplier in multipliers]


def _constant_warmup(step: int, warmup: int, drops: Sequence[int], gamma: float) -> float:
    return gamma if step < warmup else factor(step, warmup, drops, gamma)


def _starts_at_zero(step: int, warmup: int, drops: Sequence[int], gamma: float) -> float:
    return step / warmup if step < warmup else factor(step, warmup, drops, gamma)


def _reads_twice(sizes: Sequence[tuple[str, int]], chosen: set[str]) -> tuple[int, list[str]]:
    rest = filter(lambda pair: pair[0] not in chosen, sizes)
    return sum(size for _, size in rest), [name for name, _ in rest]


def _poly_cases(random: Random) -> Sequence[Case]:
    fixed = [(0.1, [1.0, 10.0], 0, 100), (0.1, [1.0, 10.0, 2.0], 50, 100), (0.1, [1.0, 10.0], 101, 100)]
    for _ in range(12):
        groups = [float(random.randint(1, 20)) for _ in range(random.randint(1, 5))]
        total = random.randint(10, 200)
        fixed.append((random.choice([0.01, 0.1, 1.0]), groups, random.randint(0, 2 * total), total))
    return [Case(arguments) for arguments in fixed]


def _factor_cases(random: Random) -> Sequence[Case]:
    fixed = [(0, 4, [10, 20], 0.2), (4, 4, [10, 20], 0.2), (10, 4, [10, 20], 0.2), (25, 0, [10, 20], 0.2)]
    for _ in range(16):
        warmup = random.randint(0, 10)
        drops = sorted(random.sample(range(warmup + 1, 60), random.randint(1, 3)))
        fixed.append((random.randint(0, 70), warmup, drops, random.choice([0.1, 0.2, 0.5])))
    return [Case(arguments) for arguments in fixed]


def _rest_cases(random: Random) -> Sequence[Case]:
    """Names in no order of the alphabet, some of which begin with others."""
    layers = [("stem", 108), ("conv1", 432), ("conv12", 40), ("backbone", 7)]
    cases = [Case((layers, {"conv1"})), Case((layers, set())), Case((layers, {name for name, _ in layers}))]
    for _ in range(8):
        some = [(f"layer{k}", random.randint(1, 500)) for k in random.sample(range(1, 20), random.randint(2, 6))]
        cases.append(Case((some, {random.choice(some)[0]})))
    return cases


def learning_rate(rate: float, old: tuple[int, int], new: tuple[int, int]) -> float:
    return rate * (new[0] * new[1]) / (old[0] * old[1])


def _by_gpus(rate: float, old: tuple[int, int], new: tuple[int, int]) -> float:
    return rate * new[0] / old[0]


def _by_rows_per_gpu(rate: float, old: tuple[int, int], new: tuple[int, int]) -> float:
    return rate * new[1] / old[1]


def _gpus_twice(rate: float, old: tuple[int, int], new: tuple[int, int]) -> float:
    return learning_rate(rate, old, new) * new[0] / old[0]


def _square_root(rate: float, old: tuple[int, int], new: tuple[int, int]) -> float:
    return rate * math.sqrt(learning_rate(1.0, old, new))


def _rate_cases(random: Random) -> Sequence[Case]:
    fixed = [(0.02, (8, 2), (1, 2)), (0.02, (8, 2), (4, 4)), (0.1, (1, 256), (8, 256)), (0.1, (8, 32), (4, 64))]
    drawn = [
        (random.uniform(0.001, 0.1), (random.randint(1, 8), random.randint(1, 32)), (random.randint(1, 64), 2 * k + 1))
        for k in range(20)
    ]
    return [Case(arguments) for arguments in [*fixed, *drawn]]


EXERCISES = (
    Exercise(
        key="27.poly_rates",
        task="The poly rate of every group at a step, as a list: defined for any number of groups and for any step.",
        reference=poly_rates,
        cases=_poly_cases,
        agree=near,
        hints=(
            "What is `(-0.01) ** 0.9` in Python? Print it.",
            "Cut the base off at zero before the power, not the result after it.",
            "`left = max(0.0, 1 - step / total)`, then `[lr * m * left**0.9 for m in multipliers]`",
        ),
        mistakes=(
            Mistake(
                "two groups at most",
                "these are the rates of a function that looks for exactly two groups. With three, all but the first "
                "keep the rate they started with, and nothing says so.",
                POST,
                answers=(_two_groups_at_most,),
            ),
            Mistake(
                "complex after the end",
                "this is a negative number to the power 0.9. Python answers with a complex learning rate.",
                "VainF/DeepLabV3Plus-Pytorch issue 59, 2021: a resumed run with more iterations",
                answers=(_unbounded,),
            ),
        ),
    ),
    Exercise(
        key="27.factor",
        task="The factor on the learning rate at a step: a linear warm-up, then gamma at each drop.",
        reference=factor,
        cases=_factor_cases,
        agree=near,
        hints=(
            "This warm-up reaches 1 at its last step. Where should its very first step be?",
            "`(step + 1) / warmup` is 1 at the last step of the warm-up and never 0.",
            "After it: `gamma ** sum(drop <= step for drop in drops)`",
        ),
        mistakes=(
            Mistake(
                "a constant warm-up",
                "this warm-up is constant: gamma until its end, and then a jump to 1. People train with that, too "
                "(torch.optim.lr_scheduler.ConstantLR), but the task asks for a straight line that ends at 1.",
                f"{POST}; K. He et al., Deep Residual Learning, 2015",
                answers=(_constant_warmup,),
            ),
            Mistake(
                "the first step is lost",
                "the first step has learning rate 0: a whole batch is computed and nothing is learned from it.",
                "verl-project/verl issue 3674, 2025; meta-pytorch/torchtune issue 2010, 2024",
                answers=(_starts_at_zero,),
            ),
        ),
    ),
    Exercise(
        key="27.rest_of",
        task="From (name, size) pairs: the total size of those not chosen, and the list of their names.",
        reference=rest_of,
        cases=_rest_cases,
        agree=same_values,
        hints=(
            "You need the rest twice: once to count, once to return.",
            "`filter(...)` and `(... for ...)` can be read once. What can be read twice?",
            "`rest = [pair for pair in sizes if pair[0] not in chosen]`",
        ),
        mistakes=(
            Mistake(
                "a filter read twice",
                "this is what a function gives that counts with a filter and then reads it again: the second time it "
                "is empty.",
                "pytorch/pytorch issue 47594, 2020: SparseAdam checked its parameters and then had none",
                answers=(_reads_twice,),
            ),
        ),
    ),
    Exercise(
        key="27.learning_rate",
        task="Learning rate by the linear rule, from `old` to `new`, each a pair (GPUs, rows per GPU).",
        reference=learning_rate,
        cases=_rate_cases,
        agree=near,
        hints=(
            "The rule is about the minibatch: all rows that one update is made of.",
            "GPUs times rows per GPU, before and after.",
            "`rate * (new[0] * new[1]) / (old[0] * old[1])`",
        ),
        mistakes=(
            Mistake(
                "GPUs only",
                "this rate follows the number of GPUs alone. The rows on each of them count as well.",
                "open-mmlab/mmdetection pull request 1038, 2019",
                answers=(_by_gpus,),
            ),
            Mistake(
                "rows per GPU only",
                "this rate follows the rows of one GPU. An update is made of the rows of all of them.",
                "an answer in PistonY/ModelZoo.pytorch issue 1, 2020",
                answers=(_by_rows_per_gpu,),
            ),
            Mistake(
                "GPUs twice",
                "this rate follows the number of GPUs twice, as if it had to make up for DDP's average. The average "
                "is already what makes the update one over the total batch.",
                "facebookresearch/moco issue 98, 2021",
                answers=(_gpus_twice,),
            ),
            Mistake(
                "square root",
                "this is scaled by the square root. That is a different rule, which keeps the variance of an update; "
                "the linear one keeps its mean.",
                "Krizhevsky, One weird trick for parallelizing convolutional neural networks, arXiv 1404.5997, 2014",
                answers=(_square_root,),
            ),
        ),
    ),
)
