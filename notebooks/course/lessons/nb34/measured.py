"""What a run gave: in numbers, which are compared, and in words, which are a symptom."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from course.kit.attempt import last_line
from course.kit.learn.agree import near
from course.kit.rank_threads import call_on_ranks, is_apart
from course.kit.ranks import RanksFailed
from frcnn_lite.data.batch import Batch, collate
from frcnn_lite.data.scenes import DigitScenes

LIMIT = 10.0  # seconds in a collective
HANGS = "it hangs: a rank waits in a collective to which not every rank comes"
MISSING = "a grafted function knows the names of the program, and imports by itself what it needs beyond them"


@dataclass(frozen=True)
class Measured:
    """facts: numbers and truths that a right program gives again, None where it did not end; words: the same for a
    person; ending: "ends", "raises" or "hangs"; sound: False where the numbers say by themselves that they are wrong.
    """

    words: str
    facts: Any = field(default=None, repr=False)
    ending: str = "ends"
    sound: bool = True

    def __repr__(self) -> str:
        return f'"{self.words}"'

    def agrees(self, other: "Measured") -> bool:
        """Whether these are the same numbers, up to rounding, or the same kind of failure."""
        if not (self.sound and other.sound):
            return (self.words, self.ending) == (other.words, other.ending)
        return near(self.facts, other.facts, tolerance=2e-3, absolute=2e-4)


def measure(function: Callable[..., Measured], *args: Any) -> Measured:
    """What a measurement gives; an error or a hang of the program is an outcome, too."""
    try:
        return function(*args)
    except RanksFailed as failed:
        if is_apart(failed):
            return Measured(HANGS, ending="hangs", sound=False)
        words = str(failed).replace(f"rank {failed.rank} raised", "a rank raised")  # which of them is a matter of time
        return Measured(_short(words), ending="raises", sound=False)
    except Exception as error:
        return Measured(_short(f"{type(error).__name__}: {last_line(error)}"), ending="raises", sound=False)


def on_two_ranks(function: Callable[..., Any], *args: Any, limit: float = LIMIT) -> list[Any]:
    """What each of two ranks returns."""
    return call_on_ranks(2, function, *args, limit=limit)


@cache
def pictures() -> Batch:
    """24 pictures of 64 x 64 with one or two digits."""
    scenes = DigitScenes("train", 24, seed=0, size=64, digits=(1, 2))
    return collate([scenes[k] for k in range(24)])


def _short(words: str) -> str:
    """The first line of an error, without an address, and what to do about a name that is not known."""
    line = next(iter(words.splitlines()), "")
    return f"{line[:150]} ({MISSING})" if "NameError" in line else line[:150]
