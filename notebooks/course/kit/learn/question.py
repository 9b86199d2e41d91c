"""A question that a notebook asks before it runs what gives the answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Question:
    """key: "NN.name", unique in the series; text: one sentence, `code` between backticks; choices: two or more.

    Raises ValueError for fewer than two choices or one that is given twice.
    """

    key: str
    text: str
    choices: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.choices) < 2 or len(set(self.choices)) < len(self.choices):
            raise ValueError(f"`choices` must be two or more different ones, got {list(self.choices)}")


def make_question(key: str, text: str, choices: Sequence[Any]) -> Question:
    """A question whose choices are compared as text, whatever they are."""
    return Question(key, text, tuple(str(choice) for choice in choices))
