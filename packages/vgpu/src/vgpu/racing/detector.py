"""Judge what happens on streams: each operator, each wait, each birth and death of memory, one call each."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterable

import torch

from vgpu.base.program import Frames, users
from vgpu.machine.streams import Stream
from vgpu.racing import report
from vgpu.racing.accesses import Access, Memory
from vgpu.racing.arrays import Arrays
from vgpu.racing.clocks import HOST, Actor, Clocks, Known
from vgpu.racing.delay import Delay, Late
from vgpu.racing.regions import region_of, whole

SMALL = 1 << 20  # the allocator keeps blocks up to this size apart from larger ones


@dataclasses.dataclass
class Touched:
    """A tensor that an operator reads or writes.

    Attributes:
        host: the tensor of the host that has the values.
        ordinal: the device that it belongs to; None for the host's own memory.
        writes: whether the operator writes it.
    """

    host: torch.Tensor
    ordinal: int | None
    writes: bool


@dataclasses.dataclass
class Made:
    """How a tensor came to its memory.

    Attributes:
        inside: in an operator; the memory of others is filled by something that nobody sees.
        reserves: nothing writes it, as in `torch.empty`.
        filled: the operator does nothing else that a stream is given, as in `torch.ones_like`.
    """

    inside: bool
    reserves: bool
    filled: bool


@dataclasses.dataclass
class _Freed:
    """Memory that its stream may hand out again, and who may still use it."""

    nbytes: int
    pending: list[Access]
    frames: Frames
    late: Late | None


class Detector:
    """All that is known of the streams and the memory of a process.

    Attributes:
        races: the races that were found, in order.
    """

    def __init__(self, delay: Delay | None = None) -> None:
        self._delay = delay
        self.races: list[report.RaceError] = []
        self._clocks = Clocks()
        self._arrays = Arrays(self._clocks)
        self._memory: dict[int, Memory] = {}  # by the identity of the storage
        self._freed: dict[Actor, list[_Freed]] = {}
        self._lock = threading.RLock()  # memory may die in any thread, and in the middle of anything

    def launch(self, actor: Actor, name: str, touched: Iterable[Touched]) -> None:
        """An operator is given to a stream, or the host computes."""
        with self._lock:
            touched = list(touched)
            self._look_at_arrays([one.host for one in touched if one.ordinal is None and one.writes])
            if actor != HOST:
                self._clocks.learn(actor, self._clocks.moment(HOST))  # it begins after all that the host has done
            step, frames = self._clocks.step(actor), users()
            races = []
            for one in touched:
                memory = self._memory.setdefault(one.host.untyped_storage()._cdata, Memory())
                shape = report.shape_of(one.host, one.ordinal)
                access = Access(actor, step, one.writes, region_of(one.host), name, shape, frames)
                met = memory.add(access, self._clocks)
                if one.ordinal is None and actor != HOST:
                    self._arrays.used(one.host, access)
                if met:
                    self.races.append(report.unordered(met[-1], access))
                races += _steps(met)
            known = self._clocks.moment(actor)
        if self._delay is not None and actor != HOST:
            self._delay.launched(actor, step, known, races)

    def moment(self, actor: Actor) -> Known:
        """What an event that is recorded now will stand for."""
        with self._lock:
            self._clocks.learn(actor, self._clocks.moment(HOST))
            return self._clocks.moment(actor)

    def wait(self, actor: Actor, moment: Known) -> None:
        """A stream, or the host, goes on after a moment."""
        with self._lock:
            if actor == HOST:
                self._look_at_arrays()
            self._clocks.learn(actor, moment)
        self._waited(actor, moment)

    def wait_for(self, actor: Actor, others: list[Actor]) -> None:
        """A stream, or the host, goes on after all that these were given so far."""
        with self._lock:
            if actor == HOST:
                self._look_at_arrays()
            moment = self._clocks.all_of(others)
            self._clocks.learn(actor, moment)
        self._waited(actor, moment)

    def _waited(self, actor: Actor, moment: Known) -> None:
        if self._delay is not None:  # without the lock: other ranks may have to go on first
            self._delay.arrived(moment)
            if actor == HOST:
                self._delay.waited(moment)

    def wait_for_memory(self, actor: Actor, storage: torch.UntypedStorage, kind: type) -> None:
        """A stream goes on after what actors of a kind did to a storage."""
        with self._lock:
            memory = self._memory.get(storage._cdata)
            if memory is not None:
                users_of = {other for other in self._clocks.actors if isinstance(other, kind)}
                for other, step in memory.steps_of(users_of).items():
                    self._clocks.learn(actor, {other: step})

    def streams_of(self, ordinal: int | None = None) -> list[Actor]:
        """The streams that have been used, of one device or of all."""
        with self._lock:
            return [
                one for one in self._clocks.actors if isinstance(one, Stream) and ordinal in (None, one.device_index)
            ]

    def born(self, storage: torch.UntypedStorage, stream: Stream, nbytes: int, made: Made) -> None:
        """The allocator gives memory to a stream."""
        with self._lock:
            self._clocks.learn(stream, self._clocks.moment(HOST))
            frames = users()
            again = self._reuse(stream, nbytes, frames)
            memory = self._memory[storage._cdata] = Memory(stream, nbytes)
            shape = f"{storage.nbytes()} bytes on {stream.device}"
            step = self._clocks.step(stream)
            memory.add(
                Access(stream, step, True, whole(storage), "the operator that made it", shape, frames, made.reserves),
                self._clocks,
            )
            if self._delay is not None:
                known = self._clocks.moment(stream)
                for freed in again:
                    if freed.late is not None:
                        self._delay.reused(freed.late, stream, step, known, _steps(freed.pending))
                if made.inside:
                    self._delay.born(storage, stream, step, known, made.filled)

    def dead(self, key: int) -> None:
        """The last reference to a storage is gone: its stream may use the memory for something else."""
        with self._lock:
            memory = self._memory.pop(key, None)
            late = self._delay.dead(key) if self._delay is not None else None
            if memory is None or memory.born_on is None:
                return
            self._clocks.learn(memory.born_on, self._clocks.moment(HOST))
            # The allocator waits for the streams of record_stream, and so for all that they have waited for.
            waits = self._clocks.all_of(list(memory.also))
            pending = [
                access
                for access in memory.unknown_to(memory.born_on, self._clocks)
                if access.step > waits.get(access.actor, 0) and not self._is_kept(access)
            ]
            if pending:
                self._freed.setdefault(memory.born_on, []).append(_Freed(memory.nbytes, pending, users(), late))

    def _is_kept(self, access: Access) -> bool:
        """Whether a work has the tensors of its collective still: it keeps them until some stream waits for it."""
        return not isinstance(access.actor, Stream) and not any(
            self._clocks.knows(stream, access.actor, access.step) for stream in self.streams_of()
        )

    def recorded(self, storage: torch.UntypedStorage, stream: Stream) -> None:
        """`record_stream`: the allocator will wait for this stream, too."""
        with self._lock:
            self._memory.setdefault(storage._cdata, Memory()).also.add(stream)

    def end(self) -> Known:
        """The moment at which all is done."""
        with self._lock:
            self._look_at_arrays()
            return self._clocks.all_of(self._clocks.actors)

    def knows(self, storage: torch.UntypedStorage) -> bool:
        """Whether an operator has touched a storage."""
        return storage._cdata in self._memory

    def share(self, storage: torch.UntypedStorage) -> None:
        """The program has an array of NumPy over pinned memory, through which it may write."""
        with self._lock:
            if self._delay is None:  # a copy that is late takes what is there by then, so such a race changes numbers
                self._arrays.share(storage)

    def _look_at_arrays(self, written: Iterable[torch.Tensor] = ()) -> None:
        """Find what the program has written since, but for what an operator writes now."""
        for tensor in written:
            self._arrays.written(tensor)
        for access in self._arrays.changed():
            self.races.append(report.changed(access, users()))

    def forget(self, key: int) -> None:
        """Memory of the host is gone; its allocator waits for all copies by itself."""
        with self._lock:
            self._memory.pop(key, None)

    def _reuse(self, stream: Stream, nbytes: int, frames: Frames) -> list[_Freed]:
        """The memory that the allocator could take for a new tensor though somebody still uses it."""
        kept, again = [], []
        for freed in self._freed.get(stream, []):
            freed.pending = [one for one in freed.pending if not self._clocks.knows(stream, one.actor, one.step)]
            fits = nbytes and nbytes <= freed.nbytes and (nbytes <= SMALL) == (freed.nbytes <= SMALL)
            if freed.pending and fits:
                self.races.append(report.reused(freed.pending[0], freed.frames, stream, frames))
                again.append(freed)
            elif freed.pending:
                kept.append(freed)
        self._freed[stream] = kept
        return again


def _steps(accesses: list[Access]) -> list[tuple[Actor, int]]:
    return [(one.actor, one.step) for one in accesses]
