"""Drawing: every choice comes from one generator, and what was chosen is kept under its name."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from differential.events import Event

T = TypeVar("T")


class Dice:
    """Choices that a seed reproduces."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)
        self.pieces: set[str] = set()

    def choice(self, some: Sequence[T]) -> T:
        """One of some."""
        return self._random.choice(some)

    def number(self, least: int, most: int) -> int:
        """A number, both ends included."""
        return self._random.randint(least, most)

    def again(self, probability: float) -> bool:
        """Whether one more of something is drawn."""
        return self._random.random() < probability

    def chance(self, probability: float, piece: str) -> bool:
        """Whether a piece comes into the program."""
        happens = self.again(probability)
        if happens:
            self.pieces.add(piece)
        return happens

    def event(self, some: tuple[Event, ...]) -> str:
        """The lines of an event that goes with the pieces there are."""
        event = self.choice([one for one in some if not one.not_with & self.pieces])
        self.pieces.add(event.piece)
        return event.lines
