"""How a lesson's `test_answers.py` tries answers: right ones in unusual forms, and wrong ones that are nearly right."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from course.kit.learn.by_key import find_exercise
from course.kit.learn.check import judge

Answer = Callable[..., Any]


def all_right(rows: Sequence[tuple[str, Answer]]) -> Callable[[str, Answer], None]:
    """A test that the checker of an exercise accepts the answer, for each row of key and answer."""

    @pytest.mark.parametrize(("key", "answer"), rows)
    def is_right(key: str, answer: Answer) -> None:
        verdict = judge(find_exercise(key), answer)
        assert verdict.solved, verdict.words

    return is_right


def all_wrong(rows: Sequence[tuple[str, Answer, str | None]]) -> Callable[[str, Answer, str | None], None]:
    """A test that the checker refuses the answer, for each row of key, answer and the name of its mistake, or None."""

    @pytest.mark.parametrize(("key", "answer", "name"), rows)
    def is_wrong(key: str, answer: Answer, name: str | None) -> None:
        verdict = judge(find_exercise(key), answer)
        assert not verdict.solved
        assert (verdict.mistake and verdict.mistake.name) == name, verdict.words

    return is_wrong
