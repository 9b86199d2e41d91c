"""What each stream, and the host, knows to be done: vector clocks.

Every actor counts its own steps. What it knows of the others is how many of their steps were done at the latest moment
it waited for, so a step happened before everything its actor, or whoever waited for that actor, does later.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

Actor = Hashable  # a stream, the streams of a process group, or HOST
HOST: Actor = "the host"
Known = Mapping[Actor, int]


class Clocks:
    """The steps of all actors, and what each knows of the others."""

    def __init__(self) -> None:
        self._known: dict[Actor, dict[Actor, int]] = {}

    def step(self, actor: Actor) -> int:
        """Let an actor begin its next step; returns its number, from 1 on."""
        mine = self._of(actor)
        mine[actor] = mine.get(actor, 0) + 1
        return mine[actor]

    def moment(self, actor: Actor) -> Known:
        """All that is done once the actor has done what it was given so far."""
        return dict(self._of(actor))

    def learn(self, actor: Actor, moment: Known) -> None:
        """Let an actor go on only after a moment."""
        mine = self._of(actor)
        for other, step in moment.items():
            if step > mine.get(other, 0):
                mine[other] = step

    def knows(self, actor: Actor, other: Actor, step: int) -> bool:
        """Whether a step of `other` is done before whatever `actor` does next."""
        return self._of(actor).get(other, 0) >= step

    def all_of(self, actors: list[Actor]) -> Known:
        """The moment at which all of these have done what they were given so far."""
        moment: dict[Actor, int] = {}
        for actor in actors:
            for other, step in self._of(actor).items():
                moment[other] = max(step, moment.get(other, 0))
        return moment

    @property
    def actors(self) -> list[Actor]:
        """Everybody who has taken a step or has waited."""
        return list(self._known)

    def _of(self, actor: Actor) -> dict[Actor, int]:
        return self._known.setdefault(actor, {})
