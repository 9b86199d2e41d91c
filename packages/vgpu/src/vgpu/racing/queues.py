"""The queues of streams whose work is delayed: nothing in them is done before somebody waits for it.

A piece of work begins after all that its stream knew of when it was launched. Beyond that the order is free, and this
file takes the one that shows a race: of two accesses that nothing orders, the later in the program is done first.
"""

from __future__ import annotations

import dataclasses
import threading
from collections import defaultdict, deque
from collections.abc import Callable

from vgpu.racing.clocks import Actor, Known


@dataclasses.dataclass(eq=False)
class Work:
    """What a stream was given.

    Attributes:
        actor: the stream.
        step: the stream's step.
        known: all that is done when it is done.
        do: computes it.
        is_ready: whether it can be computed without waiting for a different rank.
        before: later work that races with it.
        begun: whether it waits for what is done before it.
    """

    actor: Actor
    step: int
    known: Known
    do: Callable[[], object]
    is_ready: Callable[[], bool] = lambda: True
    before: list[Work] = dataclasses.field(default_factory=list)
    begun: bool = False


class Queues:
    """The work that is not done yet, a queue for each stream."""

    def __init__(self) -> None:
        self._queues: defaultdict[Actor, deque[Work]] = defaultdict(deque)
        self._lock = threading.RLock()  # of those who do the work; whoever adds some may hold locks that doing it needs

    def add(self, work: Work) -> None:
        """Give a stream one more piece of work."""
        self._queues[work.actor].append(work)

    def turn_round(self, actor: Actor, step: int, later: Work) -> None:
        """Let a stream's work of a step be done after later work that it races with."""
        for work in list(self._queues[actor]):
            if work.step >= step:
                work.before.append(later)
                return

    def run(self, moment: Known) -> None:
        """Do all that is done at a moment."""
        with self._lock:
            for actor, step in moment.items():
                self._run(actor, step)

    def _run(self, actor: Actor, step: int) -> None:
        queue = self._queues[actor]
        while queue and queue[0].step <= step:
            work = queue[0]
            if work.begun or not work.is_ready():
                return
            work.begun = True
            for other, until in work.known.items():
                if other != actor:
                    self._run(other, until)
            for later in work.before:
                if not self._waits_for_begun(later):
                    self._run(later.actor, later.step)
            queue.popleft()
            work.do()

    def _waits_for_begun(self, later: Work) -> bool:
        """Whether work comes after some that itself waits: races may ask for orders that exclude each other."""
        heads = (queue[0] for queue in list(self._queues.values()) if queue)
        return any(head.begun and later.known.get(head.actor, 0) >= head.step for head in heads)
