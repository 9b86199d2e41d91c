"""Who has touched the memory of a storage, and which of that a new access may meet."""

from __future__ import annotations

import dataclasses

from vgpu.base.program import Frames
from vgpu.racing.clocks import Actor, Clocks
from vgpu.racing.regions import Region, overlap


@dataclasses.dataclass(frozen=True)
class Access:
    """One operator that reads or writes a tensor.

    Attributes:
        actor: the stream that it runs on, or the host.
        step: the actor's step.
        writes: whether it writes.
        region: the bytes that it touches.
        name: the operator, as in "mul_".
        shape: what a reader needs to recognise the tensor: "float32 (4, 2) on cuda:0".
        frames: the lines of the program that led to it.
        reserves: it only gives the tensor its memory, as `torch.empty` does. A write on any stream may come next.
    """

    actor: Actor
    step: int
    writes: bool
    region: Region
    name: str
    shape: str
    frames: Frames
    reserves: bool = False


class Memory:
    """One storage: the accesses that a later one may meet.

    Attributes:
        born_on: the stream that the allocator gave the memory to; None for memory of the host, and where nobody saw it.
        nbytes: its size as the allocator counts it.
        also: streams of `record_stream`, which the allocator waits for.
    """

    def __init__(self, born_on: Actor | None = None, nbytes: int = 0) -> None:
        self.born_on, self.nbytes = born_on, nbytes
        self.also: set[Actor] = set()
        self._accesses: dict[tuple[Actor, Region, bool], Access] = {}

    def add(self, access: Access, clocks: Clocks) -> list[Access]:
        """Keep an access, and return the earlier ones that it races with, the latest last."""
        met = []
        for key, earlier in list(self._accesses.items()):
            if earlier.reserves and access.writes:
                del self._accesses[key]
            elif clocks.knows(access.actor, earlier.actor, earlier.step):
                if access.writes and _covers(access.region, earlier.region):
                    del self._accesses[key]  # who is ordered after this one is ordered after that, too
            elif (access.writes or earlier.writes) and overlap(access.region, earlier.region):
                met.append(earlier)
        key = access.actor, access.region, access.writes
        self._accesses.pop(key, None)  # so that the latest comes last
        self._accesses[key] = access
        return met

    def unknown_to(self, actor: Actor, clocks: Clocks) -> list[Access]:
        """The accesses that may not be done yet when `actor` goes on."""
        return [
            access
            for access in self._accesses.values()
            if access.actor != actor and not clocks.knows(actor, access.actor, access.step)
        ]

    def steps_of(self, actors: set[Actor]) -> dict[Actor, int]:
        """The last step of each of these actors on this memory."""
        steps: dict[Actor, int] = {}
        for access in self._accesses.values():
            if access.actor in actors:
                steps[access.actor] = max(access.step, steps.get(access.actor, 0))
        return steps


def _covers(one: Region, other: Region) -> bool:
    return one == other or (one.itemsize == 1 and one.start <= other.start and other.end <= one.end)
