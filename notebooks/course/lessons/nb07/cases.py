"""What several exercises of this lesson try answers on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from course.kit.learn.exercise import TODO
from course.kit.rank_case import RankCase
from course.kit.ranks import ranks

LIMIT = 3.0  # seconds in a collective after which ranks count as waiting for each other


@dataclass(frozen=True)
class OnRanks(RankCase):
    """A call in two processes, a GPU each: the result is made of what the ranks return."""

    @property
    def world_size(self) -> int:
        return 2

    def on_rank(self, function: Callable[..., Any]) -> Any:
        raise NotImplementedError

    def on_ranks(self, function: Callable[..., Any]) -> Any:
        given = ranks(self.world_size, limit=LIMIT)(_on_rank)(self, function)
        return TODO if TODO in given else self.joined(given)

    def joined(self, given: list[Any]) -> Any:
        return given


def _on_rank(case: OnRanks, function: Callable[..., Any]) -> Any:
    return case.on_rank(function)
