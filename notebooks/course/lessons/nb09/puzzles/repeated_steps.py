"""A checkpoint is written after every `save_every` steps. A rank is killed in step `killed_in`, before the step is
finished. Return the steps that were finished and are done once more after the restart.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong

hints = (
    "Which is the last step that was finished, and which the last that was saved?",
    "Step `killed_in - 1` was finished; the last multiple of `save_every` up to it was saved.",
    "`saved = (killed_in - 1) // save_every * save_every`, and the first step after it is `saved + 1`.",
)


def repeated_steps(killed_in: int, save_every: int) -> list[int]:
    saved = (killed_in - 1) // save_every * save_every
    return list(range(saved + 1, killed_in))


def _same_steps(given: Any, expected: list[int]) -> bool:
    """A list, or something else with the same numbers in it."""
    return [*given] == expected


def cases(random: Random) -> Sequence[Case]:
    fixed = [(8, 5), (10, 5), (11, 5), (3, 5), (1, 5), (7, 1)]
    return [Case(pair) for pair in [*fixed, *((random.randint(1, 60), random.randint(1, 12)) for _ in range(20))]]


agree = _same_steps


@wrong
def the_saved_step_again(killed_in: int, save_every: int) -> list[int]:
    """these steps begin with the one that is in the checkpoint. Its update would be applied twice.

    Source: thinking-machines-lab/tinker-cookbook issue 935, 2026; deepset-ai/FARM pull request 279, 2020
    """
    saved = (killed_in - 1) // save_every * save_every
    return list(range(saved, killed_in))


@also(the_saved_step_again)
def from_the_saved_step_or_the_first(killed_in: int, save_every: int) -> list[int]:
    return [step for step in the_saved_step_again(killed_in, save_every) if step]


@wrong
def a_checkpoint_that_is_not_there(killed_in: int, save_every: int) -> list[int]:
    """this counts on the checkpoint of the step in which the rank was killed. It was not written.

    Source: AI-Hypercomputer/maxtext pull request 5260, 2026, restored an unfinished one
    """
    return list(range(killed_in // save_every * save_every + 1, killed_in))


@wrong
def the_killed_step(killed_in: int, save_every: int) -> list[int]:
    """this list ends with the step in which the rank was killed. It was not finished, so nothing of it is repeated."""
    return [*repeated_steps(killed_in, save_every), killed_in]
