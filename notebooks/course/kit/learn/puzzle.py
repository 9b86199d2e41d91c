"""A puzzle is a file: its docstring is the task, the function named like the file is the answer, and `cases` gives the
calls to try.

`hints` lead from a nudge to the line itself, and `agree`, if the file has one, compares the results of one call. A
wrong answer that people give is a function marked `@wrong`; its docstring is the sentence that meets whoever gives it.
"""

import operator
from collections.abc import Callable, Sequence
from inspect import cleandoc, getdoc
from types import ModuleType
from typing import Any, overload

from course.kit.learn.exercise import Case, Exercise, Mistake

SOURCE = "Source: "  # begins the last paragraph of a wrong answer that somebody has given in public

Answer = Callable[..., Any]
Recognise = Callable[[Sequence[Case], Sequence[Any]], bool]


@overload
def wrong(answer: Answer) -> Answer: ...
@overload
def wrong(*, recognise: Recognise) -> Callable[[Answer], Answer]: ...


def wrong(answer: Answer | None = None, *, recognise: Recognise | None = None) -> Any:
    """Mark a wrong answer, whose docstring says what such a program gives; its last paragraph may name a source.

    Whoever gives the same results in every case has made this mistake. `recognise(cases, given)` decides in place of
    that where equal results are too narrow a sign.
    """

    def mark(answer: Answer) -> Answer:
        answer.ways, answer.recognise = [answer], recognise  # type: ignore[attr-defined]
        return answer

    return mark if answer is None else mark(answer)


def also(first: Answer) -> Callable[[Answer], Answer]:
    """Mark a different way to make the mistake `first`, one that gives other results and is met with the same words."""

    def mark(answer: Answer) -> Answer:
        first.ways.append(answer)  # type: ignore[attr-defined]
        return answer

    return mark


def read_puzzle(module: ModuleType) -> Exercise:
    """The exercise that a file holds, its mistakes in the order of the file. The key is made of the file's place."""
    *_, lesson, _, name = module.__name__.split(".")
    return Exercise(
        key=f"{lesson.removeprefix('nb')}.{name}",
        task=_paragraphs(module)[0],
        reference=getattr(module, name),
        cases=module.cases,
        hints=module.hints,
        mistakes=tuple(_mistake(value) for value in vars(module).values() if hasattr(value, "ways")),
        agree=getattr(module, "agree", operator.eq),
    )


def _mistake(answer: Answer) -> Mistake:
    message, *more = _paragraphs(answer)
    source = more[-1].removeprefix(SOURCE) if more else ""
    ways, recognise = answer.ways, answer.recognise  # type: ignore[attr-defined]
    return Mistake(answer.__name__.replace("_", " "), message, source, tuple(ways), recognise)


def _paragraphs(told: Any) -> list[str]:
    """Those of a docstring, each on one line."""
    return [" ".join(text.split()) for text in cleandoc(getdoc(told) or "").split("\n\n")]
