"""From ("save" or "write", tensor) in forward order: the positions of the saves that fail at backward."""

from collections.abc import Sequence
from random import Random

from course.kit.learn.agree import same_values
from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong
from course.lessons.nb29.cases import Events, drawn_cases

hints = (
    "A save remembers one number. What changes that number afterwards?",
    "Count the writes per tensor; note the count at every save; compare with the counts at the end.",
    "`[p for p, name, version in saved if version != versions.get(name, 0)]`",
)


def failing_saves(events: Events) -> list[int]:
    """Positions of the saves whose tensor is at another version when backward comes.

    events: ("save" or "write", name of the tensor), in the order of the forward pass.
    """
    versions: dict[str, int] = {}
    saved = []
    for position, (kind, name) in enumerate(events):
        if kind == "write":
            versions[name] = versions.get(name, 0) + 1
        else:
            saved.append((position, name, versions.get(name, 0)))
    return [position for position, name, version in saved if version != versions.get(name, 0)]


def cases(random: Random) -> Sequence[Case]:
    fixed: list[Events] = [
        [("save", "target"), ("write", "target"), ("save", "target")],
        [("write", "target"), ("save", "target"), ("save", "target")],
        [("save", "target"), ("write", "mask")],
        [],
    ]
    return [Case((events,)) for events in (*fixed, *(drawn_cases(random) for _ in range(20)))]


agree = same_values


@wrong
def any_write_after_any_save(events: Events) -> list[int]:
    """here every write fails every earlier save. Versions belong to a tensor: a write to a different one does no harm.

    Source: post 004, an engineer's notes, 2021: "put the loss that modifies before all losses"
    """
    last = max((position for position, (kind, _) in enumerate(events) if kind == "write"), default=-1)
    return [position for position, (kind, _) in enumerate(events) if kind == "save" and position < last]
