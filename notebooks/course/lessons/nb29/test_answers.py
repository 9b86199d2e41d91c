"""Answers to the exercises of notebook 29: a right one in an unusual form, and torch itself."""

from random import Random

import torch
from answers import all_right

from course.lessons.nb29.puzzles.failing_saves import failing_saves
from course.lessons.nb29.puzzles.version_after import cases, version_after

RIGHT = [
    ("29.failing_saves", lambda events: tuple(failing_saves(events))),
]

test_right_in_an_unusual_form = all_right(RIGHT)


ARGUMENTS = {  # of the methods that need some
    **dict.fromkeys(("add", "add_", "mul", "mul_"), (1,)),
    **dict.fromkeys(("unsqueeze", "unsqueeze_"), (0,)),
    "view": (-1,),
    "transpose_": (0, 1),
    "apply_": (lambda number: number,),
}


def test_torch_counts_versions_as_the_exercise_does():
    for case in cases(Random(0)):
        (names,) = case.args
        tensor = torch.ones(2, 3)
        for name in names:
            given = (tensor.clone(), lambda mine, other: mine) if name == "map_" else ARGUMENTS.get(name, ())
            getattr(tensor, name)(*given)
        assert tensor._version == version_after(names), names
