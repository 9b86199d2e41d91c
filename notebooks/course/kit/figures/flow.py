"""State of the flow figure: which rows scatter cut for which device, and which of them a replica was called with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor

from course.kit.step_trace import Trace
from frcnn_lite.parallel import chunk_sizes

Chunks = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Flow:
    """What scatter did and what the replicas got, as plain row numbers.

    chunks: for every argument, in order, its rows as they were cut for cuda:0, cuda:1, ...;
    received: for cuda:0, cuda:1, ... the rows of the *first* argument that the replica's forward was called with;
    gpus: number of devices of the DataParallel.
    """

    chunks: Mapping[str, Chunks]
    received: Chunks
    gpus: int

    def __post_init__(self) -> None:
        if not self.chunks or not any(self.first):
            raise ValueError("`chunks` is empty: name at least one argument that has rows")
        if max(len(self.received), *map(len, self.chunks.values())) > self.gpus:
            raise ValueError(f"more chunks than `gpus={self.gpus}`: {self.chunks} and received {self.received}")
        for rows, chunk in zip(self.received, self.first, strict=False):
            if rows and list(rows) != list(chunk):
                raise ValueError(f"a replica received rows {list(rows)}, its chunk was {list(chunk)}: not one run")

    @property
    def first(self) -> Chunks:
        """Chunks of the first argument, whose rows have faces."""
        return next(iter(self.chunks.values()))

    @property
    def rows(self) -> int:
        """Rows that went in."""
        return sum(map(len, self.first))

    @property
    def kept(self) -> int:
        """Rows that came back."""
        return sum(map(len, self.received))

    def called(self, gpu: int) -> bool:
        """Whether the replica on this GPU ran."""
        return gpu < len(self.received) and len(self.received[gpu]) > 0

    @classmethod
    def from_trace(cls, trace: Trace, gpus: int, **arguments: Tensor) -> Flow:
        """The flow of a run: `arguments` are the tensors that went in, by the names that forward gives them.

        Raises ValueError when the trace holds two calls on one device, which are two steps and not one.
        """
        chunks = {name: cut(len(tensor), gpus) for name, tensor in arguments.items()}
        name, tensor = next(iter(arguments.items()))
        received: list[list[int]] = [[] for _ in range(gpus)]
        for call, rows in zip(trace.calls, trace.find_rows(name, tensor), strict=True):
            index = call.device.index or 0
            if received[index]:
                raise ValueError(f"the trace holds two calls on {call.device}: trace one step at a time")
            received[index] = rows
        return cls(chunks, received, gpus)

    @classmethod
    def from_rule(cls, gpus: int, **rows: int) -> Flow:
        """What positional tensor arguments of so many rows lead to, without a run: chunk each, then zip."""
        chunks = {name: cut(n, gpus) for name, n in rows.items()}
        calls = min(map(len, chunks.values()), default=0)
        first = next(iter(chunks.values()), [])
        return cls(chunks, [chunk if k < calls else [] for k, chunk in enumerate(first)], gpus)


def cut(rows: int, gpus: int) -> list[list[int]]:
    """Row numbers 0..rows-1 in the chunks that scatter makes."""
    ends = [0]
    for size in chunk_sizes(rows, gpus):
        ends.append(ends[-1] + size)
    return [list(range(start, end)) for start, end in pairwise(ends)]
