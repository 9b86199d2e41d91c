"""From the events of 29.failing_saves and the position of a save: the first write that breaks it, or None."""

from collections.abc import Sequence
from random import Random

from course.kit.learn.agree import same_values
from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong
from course.lessons.nb29.cases import Events, drawn_cases

hints = (
    "It comes after the save. Anomaly mode shows the save.",
    "Look at the positions after `save` for a write to the same tensor.",
    '`next((p for p in range(save + 1, len(events)) if events[p] == ("write", name)), None)`',
)


def guilty_write(events: Events, save: int) -> int | None:
    """Position of the first write to the tensor saved at position `save` after it was saved; None if there is none."""
    name = events[save][1]
    later = range(save + 1, len(events))
    return next((position for position in later if events[position] == ("write", name)), None)


def cases(random: Random) -> Sequence[Case]:
    fixed: list[tuple[Events, int]] = [
        ([("write", "t"), ("save", "t"), ("write", "t"), ("write", "t")], 1),
        ([("save", "t"), ("write", "u")], 0),
    ]
    for _ in range(20):
        events = [("save", random.choice("ab")), *drawn_cases(random)]
        saves = [position for position, (kind, _) in enumerate(events) if kind == "save"]
        fixed.append((events, random.choice(saves)))
    return [Case(arguments) for arguments in fixed]


agree = same_values


@wrong
def the_operation_in_the_backtrace(events, save):
    """this is the operation that saved the tensor. It is the victim; the write comes later.

    Source: the hint that post 004, an engineer's notes, 2021 quote: "the operation that failed to compute its gradient"
    """
    return save
