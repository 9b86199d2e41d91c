"""How the tables of answers are tried: right ones in unusual forms, and wrong ones that are nearly right."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from course.kit.learn.by_key import find_exercise
from course.kit.learn.check import judge

Answer = Callable[..., Any]


def pairs(table: Mapping[str, Iterable[Answer]]) -> list[tuple[str, Answer]]:
    """The key and the answer of each entry, for `pytest.mark.parametrize`."""
    return [(key, answer) for key, answers in table.items() for answer in answers]


def assert_right(key: str, answer: Answer) -> None:
    """The checker of an exercise accepts the answer."""
    verdict = judge(find_exercise(key), answer)
    assert verdict.solved, verdict.words


def assert_wrong(key: str, answer: Answer, *named: str | None) -> None:
    """The checker refuses the answer, and takes it for the mistake that is named; for none, if None is named."""
    verdict = judge(find_exercise(key), answer)
    assert not verdict.solved
    assert not named or (verdict.mistake and verdict.mistake.name) == named[0], verdict.words
