"""How a lesson's `test_answers.py` tries answers: right ones in unusual forms, and wrong ones that are nearly right."""

from collections.abc import Callable
from typing import Any

from course.kit.learn.by_key import find_exercise
from course.kit.learn.check import judge

Answer = Callable[..., Any]


def assert_right(key: str, answer: Answer) -> None:
    """The checker of an exercise accepts the answer."""
    verdict = judge(find_exercise(key), answer)
    assert verdict.solved, verdict.words


def assert_wrong(key: str, answer: Answer, name: str | None) -> None:
    """The checker refuses the answer, and takes it for the mistake of that name, or for none where the name is None."""
    verdict = judge(find_exercise(key), answer)
    assert not verdict.solved
    assert (verdict.mistake and verdict.mistake.name) == name, verdict.words
