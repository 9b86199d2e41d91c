"""What several exercises of this lesson try answers on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from course.kit.learn.exercise import TODO, Case
from course.kit.ranks import RanksFailed, ranks

LIMIT = 3.0  # seconds in a collective after which ranks count as waiting for each other
known: dict[tuple[str, str], Any] = {}  # what the answers of this lesson give, which starts processes once


@dataclass(frozen=True)
class OnRanks(Case):
    """A call in two processes, a GPU each: the result is made of what the ranks return."""

    @property
    def world_size(self) -> int:
        return 2

    def on_rank(self, function: Callable[..., Any]) -> Any:
        raise NotImplementedError

    def call(self, function: Callable[..., Any]) -> Any:
        if not getattr(function, "__module__", "").startswith(f"{__package__}."):
            return self._run(function)
        key = (function.__qualname__, repr(self.args))
        if key not in known:
            known[key] = self._run(function)
        return known[key]

    def _run(self, function: Callable[..., Any]) -> Any:
        try:
            return self.on_ranks(function)
        except RanksFailed as failed:
            if "raised NotImplementedError" in str(failed):  # a starter that is not filled in
                raise NotImplementedError from None
            raise

    def on_ranks(self, function: Callable[..., Any]) -> Any:
        given = ranks(self.world_size, limit=LIMIT)(_on_rank)(self, function)
        return TODO if TODO in given else self.joined(given)

    def joined(self, given: list[Any]) -> Any:
        return given


def _on_rank(case: OnRanks, function: Callable[..., Any]) -> Any:
    return case.on_rank(function)
