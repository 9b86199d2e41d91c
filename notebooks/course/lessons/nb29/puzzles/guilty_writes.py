"""From a log, ("save", "write" or "data", name of a tensor) in forward order: for each save that backward will refuse,
the first write that made its version wrong.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from course.kit.learn.agree import same_values
from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong

Events = Sequence[tuple[str, str]]

hints = (
    "A save is refused if its version has changed. Who can change it, and when?",
    "For each save look at the positions after it: which is the first write to the same tensor?",
    '`later = [k for k in range(save + 1, len(events)) if events[k] == ("write", name)]`',
)


def guilty_writes(events: Events) -> dict[int, int]:
    guilty = {}
    for save, (kind, name) in enumerate(events):
        later = [k for k in range(save + 1, len(events)) if events[k] == ("write", name)]
        if kind == "save" and later:
            guilty[save] = later[0]
    return guilty


def cases(random: Random) -> Sequence[Case]:
    fixed: list[Events] = [
        [("save", "target"), ("write", "target"), ("write", "target"), ("save", "target")],
        [("write", "target"), ("save", "target"), ("save", "target")],
        [("save", "target"), ("write", "mask"), ("data", "target")],
        [("save", "target"), ("data", "target"), ("write", "target")],
        [],
    ]
    kinds = ["save", "save", "write", "data"]
    drawn = [[(random.choice(kinds), random.choice("ab")) for _ in range(random.randint(1, 9))] for _ in range(20)]
    return [Case((events,)) for events in (*fixed, *drawn)]


def agree(given: Any, expected: Mapping[int, int]) -> bool:
    return isinstance(given, Mapping) and same_values(sorted(given.items()), sorted(expected.items()))


def _pairs(events: Events, kinds: Sequence[str], same: bool = True, which: int = 0) -> dict[int, int]:
    found = {}
    for save, (kind, name) in enumerate(events):
        rest = enumerate(events[save + 1 :], save + 1)
        later = [k for k, (other, written) in rest if other in kinds and (written == name or not same)]
        if kind == "save" and later:
            found[save] = later[which]
    return found


@wrong
def any_write_after_any_save(events: Events) -> dict[int, int]:
    """here every write fails every earlier save. Versions belong to a tensor: a write to a different one does no harm.

    Source: post 004, an engineer's notes, 2021: "put the loss that modifies before all losses"
    """
    return _pairs(events, ["write"], same=False)


@wrong
def the_last_write(events: Events) -> dict[int, int]:
    """this is what a function gives that names the last write to the tensor. The first one after the save has made the
    version wrong, and the later ones only made it larger.
    """
    return _pairs(events, ["write"], which=-1)


@wrong
def the_latest_save(events: Events) -> dict[int, int]:
    """this is what a function gives that remembers one save of each tensor, the latest. Backward refuses every save
    after which its tensor was written, so all of them are needed.
    """
    saves: dict[str, int] = {}
    guilty: dict[int, int] = {}
    for k, (kind, name) in enumerate(events):
        if kind == "save":
            saves[name] = k
        elif kind == "write" and name in saves:
            guilty.setdefault(saves[name], k)
    return guilty


@wrong
def data_counts(events: Events) -> dict[int, int]:
    """this is what a function gives that blames writes through `.data`. They change the numbers and not the version, so
    backward refuses nothing.
    """
    return _pairs(events, ["write", "data"])


@wrong
def the_operation_in_the_backtrace(events: Events) -> dict[int, int]:
    """this names the operation that saved the tensor. It is the victim; the write comes later.

    Source: the hint that post 004, an engineer's notes, 2021 quote: "the operation that failed to compute its gradient"
    """
    return {save: save for save in _pairs(events, ["write"])}
