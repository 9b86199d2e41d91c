"""The cases of the ten exercises: a reader's function, grafted onto the program with this one bug, is measured."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from course.kit.learn.exercise import TODO, Case
from course.lessons.nb34.bugs import KINDS, RIGHT
from course.lessons.nb34.measured import Measured, measure
from course.lessons.nb34.measures import MEASURES
from course.lessons.nb34.plant import chosen, definitions, edited, graft, source_of

BY_NAME = {kind.name: kind for kind in KINDS}
SITUATIONS: dict[str, tuple[tuple[Any, ...], ...]] = {
    "memory": (("four steps on two GPUs",), ("two calls before backward",), ("evaluation",)),
    "apart": ((2,), (1,), (5,)),  # 8 pictures in 5 parts are 4 pieces
    "still": ((0.1,), (0.02,), (0.3,)),
    "devices": (("on two GPUs",), ("moved to cuda:1",), ("moved to cpu",)),
    "gradient": (((5, 2),), ((3, 0),), ((0, 1),), ((0, 0),), ((6,),)),  # the last one on one rank
    "waiting": (((4, 0),), ((0, 3),), ((0, 0),), ((2, 5),)),
    "unseen": ((24, 4), (30, 4), (41, 3)),
    "restart": (("SGD",), ("Adam",), ("an older file is there, and the disk is slow",)),
    "statistics": ((0.2,), (0.5,), (0.0,)),
    "masks": ((), (), ()),
}


@dataclass(frozen=True)
class Grafted(Case):
    """A situation of a kind, args[1:] of its measurement; args[0] is the kind's name."""

    def call(self, function: Callable[..., Any]) -> Any:
        kind = BY_NAME[self.args[0]]
        parts = parts_of(function)
        if parts is None:
            return function()  # a starter: it returns TODO, or raises NotImplementedError
        return self.measure(graft(edited(RIGHT, chosen(0)[kind].edits), parts))

    def measure(self, text: str) -> Measured:
        """What a program gives in this situation."""
        name, *situation = self.args
        return measure(MEASURES[name], text, *situation)

    def show(self, name: str) -> str:
        *situation, seed = self.args[1:]
        return f"{name} ({', '.join(map(str, [*situation, f'seed {seed}']))})"


def cases_of(name: str) -> Callable[[Random], Sequence[Case]]:
    """The situations of a kind, each with a seed that is drawn."""

    def cases(random: Random) -> Sequence[Case]:
        return [Grafted((name, *situation, random.randrange(1000))) for situation in SITUATIONS[name]]

    return cases


def agree(given: object, expected: Measured) -> bool:
    """Whether the numbers are those of the right program."""
    return isinstance(given, Measured) and given.agrees(expected)


def instead(*edits: tuple[str, str]) -> Callable[[Any], Any]:
    """A decorator: the function stands for what the right program has after these replacements of text."""

    def mark(answer: Any) -> Any:
        right, parts = definitions(RIGHT), definitions(edited(RIGHT, edits))
        answer.parts = {name: source for name, source in parts.items() if source != right.get(name)}
        return answer

    return mark


def parts_of(function: Callable[..., Any]) -> dict[str, str] | None:
    """The definitions that an answer brings along; None where it is a starter that is not filled in.

    Raises ValueError for a function whose name the program does not have.
    """
    if hasattr(function, "parts"):
        return function.parts
    name = getattr(function, "__name__", "")
    known = definitions(RIGHT)
    if name in known:
        return dict([source_of(function)])
    if isinstance(function, type) or function() is not TODO:
        raise ValueError(f"the program has no `{name}`; it has {', '.join(known)}")
    return None
