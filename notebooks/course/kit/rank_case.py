"""A call of an exercise on several ranks, whose results are kept for the lessons' own answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from course.kit.learn.exercise import Case
from course.kit.ranks import RanksFailed

LESSONS = "course.lessons."
# A wrong answer of a reader is compared with every named one, and those start ranks each time; what they give does not
# change.
_known: dict[tuple[type, Callable[..., Any], str], Any] = {}


@dataclass(frozen=True)
class RankCase(Case):
    """A call on ranks: a subclass says how they are started, and what a failure of theirs counts as."""

    def call(self, function: Callable[..., Any]) -> Any:
        """What the ranks give, from the second call on as it was, where the function is a lesson's own.

        Raises:
            NotImplementedError: the function is a starter that is not filled in.
            RanksFailed: as `failed` decides.
        """
        if not getattr(function, "__module__", "").startswith(LESSONS):
            return self._run(function)
        key = (type(self), function, repr(self.args))
        if key not in _known:
            _known[key] = self._run(function)
        return _known[key]

    def on_ranks(self, function: Callable[..., Any]) -> Any:
        """Start the ranks, and make the result of the call of what they return."""
        raise TypeError(f"{type(self).__name__} must say how its ranks are started")

    def failed(self, failed: RanksFailed) -> Any:
        """The result where ranks failed; here the failure itself is raised."""
        raise failed

    def _run(self, function: Callable[..., Any]) -> Any:
        try:
            return self.on_ranks(function)
        except RanksFailed as failed:
            if "raised NotImplementedError" in str(failed):
                raise NotImplementedError from None
            return self.failed(failed)
