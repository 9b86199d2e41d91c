"""A question that a notebook asks before it runs what gives the answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
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
            raise ValueError(f"choices must be two or more different ones, got {list(self.choices)}")


def make_question(key: str, text: str, choices: Sequence[Any]) -> Question:
    """A question whose choices are compared as text, whatever they are."""
    return Question(key, text, tuple(str(choice) for choice in choices))


def find_question(key: str) -> Question:
    """The question "NN.name" out of `course/questions/nbNN.py`.

    Raises KeyError when there is no such question.
    """
    number = key.partition(".")[0]
    home = f"course.questions.nb{number}"
    try:
        module = import_module(home)
    except ModuleNotFoundError as error:
        if error.name != home:
            raise  # the questions are there, something that they need is not
        raise KeyError(
            f"{key!r}: there are no questions of notebook {number!r}; a key reads like '02.keyword'"
        ) from None
    known = {question.key: question for question in module.QUESTIONS}
    if key not in known:
        raise KeyError(f"{key!r} is not a question; notebook {number} has {', '.join(known)}")
    return known[key]
