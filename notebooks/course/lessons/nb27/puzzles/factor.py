"""The factor on the learning rate at a step: a linear warm-up, then gamma at each drop."""

from collections.abc import Sequence
from random import Random

from course.kit.learn.agree import near
from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong

hints = (
    "This warm-up reaches 1 at its last step. Where should its very first step be?",
    "`(step + 1) / warmup` is 1 at the last step of the warm-up and never 0.",
    "After it: `gamma ** sum(drop <= step for drop in drops)`",
)


def factor(step: int, warmup: int, drops: Sequence[int], gamma: float) -> float:
    """(step + 1) / warmup while step < warmup; then gamma to the number of drops that are not after step."""
    if step < warmup:
        return (step + 1) / warmup
    return gamma ** sum(drop <= step for drop in drops)


def cases(random: Random) -> Sequence[Case]:
    fixed = [(0, 4, [10, 20], 0.2), (4, 4, [10, 20], 0.2), (10, 4, [10, 20], 0.2), (25, 0, [10, 20], 0.2)]
    for _ in range(16):
        warmup = random.randint(0, 10)
        drops = sorted(random.sample(range(warmup + 1, 60), random.randint(1, 3)))
        fixed.append((random.randint(0, 70), warmup, drops, random.choice([0.1, 0.2, 0.5])))
    return [Case(arguments) for arguments in fixed]


agree = near


@wrong
def a_constant_warm_up(step: int, warmup: int, drops: Sequence[int], gamma: float) -> float:
    """this warm-up is constant: gamma until its end, and then a jump to 1. People train with that, too
    (torch.optim.lr_scheduler.ConstantLR), but the task asks for a straight line that ends at 1.

    Source: an engineer's notes on PyTorch, March 2021; K. He et al., Deep Residual Learning, 2015
    """
    return gamma if step < warmup else factor(step, warmup, drops, gamma)


@wrong
def the_first_step_is_lost(step: int, warmup: int, drops: Sequence[int], gamma: float) -> float:
    """the first step has learning rate 0: a whole batch is computed and nothing is learned from it.

    Source: verl-project/verl issue 3674, 2025; meta-pytorch/torchtune issue 2010, 2024
    """
    return step / warmup if step < warmup else factor(step, warmup, drops, gamma)
