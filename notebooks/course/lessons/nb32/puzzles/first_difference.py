"""The first of `names`, the outputs of a net in order, that differs; None if none does. `differs(name)` says whether
the file and PyTorch disagree there. Once they do, they disagree at all later names.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from course.kit.learn.exercise import TODO, Case
from course.kit.learn.puzzle import also, wrong

hints = (
    "Ask in the middle. What does each of the two answers say about the other names?",
    "Keep two numbers: before `low` all agree, and from `high` on all differ. Begin with 0 and `len(names)`.",
    "`while low < high: middle = (low + high) // 2`, and then `high = middle` or `low = middle + 1`.",
)


def first_difference(names: Sequence[str], differs: Callable[[str], bool]) -> str | None:
    low, high = 0, len(names)
    while low < high:
        middle = (low + high) // 2
        if differs(names[middle]):
            high = middle
        else:
            low = middle + 1
    return names[low] if low < len(names) else None


@dataclass(frozen=True)
class Searched:
    """What was found, and whether `differs` was called more often than bisection needs."""

    found: Any
    calls: int
    allowed: int

    def __repr__(self) -> str:
        much = f", more than {self.allowed}" if self.calls > self.allowed else ""
        return f"{self.found!r} after {self.calls} calls{much}"


@dataclass(frozen=True)
class Search(Case):
    """A call with `count` names of which those from number `first` on differ."""

    def call(self, function: Callable[..., Any]) -> Any:
        count, first = self.args
        names = [f"layer {k}" for k in range(count)]
        asked: list[str] = []

        def differs(name: str) -> bool:
            asked.append(name)
            return names.index(name) >= first

        found = function(names, differs)
        # one more than the logarithm, for those who look at the last name first
        return TODO if found is TODO else Searched(found, len(asked), math.ceil(math.log2(count + 1)) + 1)

    def show(self, name: str) -> str:
        count, first = self.args
        return f"{name}({count} names, of which {max(0, count - first)} differ)"


def cases(random: Random) -> Sequence[Case]:
    fixed = [(1, 0), (1, 1), (2, 1), (8, 8), (40, 0), (40, 39)]
    counts = [random.randint(3, 60) for _ in range(20)]
    return [Search(case) for case in [*fixed, *((n, random.randint(0, n)) for n in counts)]]


def agree(given: Any, expected: Searched) -> bool:
    return isinstance(given, Searched) and given.found == expected.found and given.calls <= given.allowed


def _right_and_slow(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    def expected(case: Case) -> str | None:
        count, first = case.args
        return f"layer {first}" if first < count else None

    return all(isinstance(g, Searched) and g.found == expected(c) for c, g in zip(cases, given, strict=True))


@wrong(recognise=_right_and_slow)
def one_by_one(names, differs):
    """the name is right, and `differs` was called more often than needed. Every call is an export of a part of the net
    and a run of it. Halve what is left with each: 60 names take six calls.
    """
    return next((name for name in names if differs(name)), None)


@also(one_by_one)
def from_the_end(names, differs):
    agreeing = [name for name in names if not differs(name)]
    return names[len(agreeing)] if len(agreeing) < len(names) else None


@wrong
def the_last_that_agrees(names, differs):
    """this is the name *before* the first difference. The layer to look at is the first whose output differs."""
    found = first_difference(names, differs)
    k = len(names) if found is None else names.index(found)
    return names[k - 1] if k else None


@wrong
def there_is_always_one(names, differs):
    """this gives a name where nothing differs. A file that computes the same is the case that one hopes for."""
    return first_difference(names, differs) or names[-1]
