"""From the names of model and file: (missing in the file, unknown to the model), two lists."""

from collections.abc import Sequence
from random import Random

from course.kit.learn.agree import same_values
from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong

hints = (
    "Two questions, one for each side.",
    "Keep the order, so that a reader finds the names where they stand.",
    "`[name for name in model if name not in file], [name for name in file if name not in model]`",
)


def left_over(model: Sequence[str], file: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names the model lacks in the file, and names of the file the model does not know, each in its order."""
    return [name for name in model if name not in file], [name for name in file if name not in model]


def cases(random: Random) -> Sequence[Case]:
    known = ["conv.weight", "conv.bias", "bn.running_mean", "fc.weight", "fc.bias", "aux.weight"]
    fixed = [(known[:3], known[:3]), (known[:4], known[1:5]), (known, [])]
    drawn = [
        (random.sample(known, random.randint(1, 6)), random.sample(known, random.randint(1, 6))) for _ in range(15)
    ]
    return [Case(pair) for pair in (*fixed, *drawn)]


agree = same_values


@wrong
def model_dict_update(model, file):
    """this is the report when what is missing is filled up with the model's own names, so nothing is ever missing:
    untrained weights stay, and nobody hears of it.

    Source: post 004, an engineer's notes, 2021: model_dict.update(pretrained_dict)
    """
    return ([], left_over(model, file)[1])


@wrong
def strict_False(model, file):
    """neither side is reported, which is what a `strict=False` does whose result nobody reads.

    Source: mseitzer/pytorch-fid issue 34, 2020: strict=False resolves the issue
    """
    return ([], [])
