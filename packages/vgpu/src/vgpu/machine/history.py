"""Who allocated what, and when: what memory.py tells of every storage while `_record_memory_history` is on.

PyTorch's allocator keeps two things: with each block the frames that asked for it, and of each device the last events.
Every storage is a segment of its own here, so its event comes with one for the segment. Addresses are those of the
host's memory: `x.data_ptr()` finds the block of x. While nothing is recorded, memory.py calls nothing of this file.
"""

from __future__ import annotations

import enum
import sys
import time
from collections import defaultdict, deque
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import torch

from vgpu.machine import memory, pools, streams

_PACKAGE = str(Path(__file__).parent.parent)
_NO_CONTEXT = "N/A"  # where no compiler says what it compiles

Frames = list[tuple[Any, int | None]]  # code and line of every call, the innermost first


class When(enum.IntEnum):
    """For which events frames are kept: each step includes those before it."""

    NEVER = 0
    STATE = 1  # for the blocks that are still held
    ALLOC = 2  # for the events of allocations, too
    ALL = 3  # and for those of frees


class Note(NamedTuple):
    """What is known of a storage that its device counts."""

    address: int
    requested: int
    stream: int
    frames: Frames | None = None
    pool: pools.Pool = pools.DEFAULT


class History:
    """The recording that is on.

    Attributes:
        asked_for: False where only the pool of each storage is noted, because a program uses pools.
        events: of each device, the last `most` dictionaries of PyTorch's format, with `Frames` in them.
    """

    asked_for = True

    def __init__(self, when: When, most: int, skip: Collection[str] = ()) -> None:
        self.when, self.skip = when, frozenset(skip)
        self.events: defaultdict[int, deque[dict[str, Any]]] = defaultdict(lambda: deque(maxlen=most))
        for allocation, storage in memory.live():  # the address of a storage cannot be asked for when it is freed
            allocation.note = note_of(allocation, storage)

    def resize(self, when: When, most: int, skip: Collection[str]) -> None:
        """Go on with other settings and the events that there are."""
        self.when, self.skip = when, frozenset(skip)
        held = {ordinal: deque(events, most) for ordinal, events in self.events.items()}
        self.events = defaultdict(lambda: deque(maxlen=most), held)

    def allocated(self, allocation: memory.Allocation, storage: torch.UntypedStorage) -> None:
        """Note a storage, and the frames that asked for it."""
        frames = _frames() if self.when >= When.STATE else None
        stream = streams.current(allocation.ordinal).stream_id
        note = allocation.note = Note(
            storage.data_ptr(), storage.nbytes(), stream, frames, pools.current(allocation.ordinal)
        )
        shown = frames if self.when >= When.ALLOC else None
        self._add("segment_alloc", allocation.ordinal, note, allocation.nbytes, shown)
        self._add("alloc", allocation.ordinal, note, note.requested, shown)

    def freed(self, allocation: memory.Allocation) -> None:
        """Add the events of a free; the storage is gone already."""
        note = getattr(allocation, "note", None)
        if note is None:
            return
        frames = _frames() if self.when >= When.ALL else None
        ordinal, known = allocation.ordinal, note.frames if self.when >= When.ALLOC else None
        self._add("free_requested", ordinal, note, note.requested, frames)
        self._add("free_completed", ordinal, note, note.requested, frames or known)
        self._add("segment_free", ordinal, note, allocation.nbytes, frames)

    def out_of_memory(self, ordinal: int, nbytes: int, free: int) -> None:
        """Add the event of a request that the device could not grant."""
        frames = _frames() if self.when >= When.ALLOC else None
        self._add("oom", ordinal, Note(free, nbytes, streams.current(ordinal).stream_id), nbytes, frames)

    def looked_at(self, ordinal: int, held: int) -> None:
        """Add the event that PyTorch leaves for every snapshot."""
        self._add("snapshot", ordinal, Note(0, held, 0), held, None)

    def annotated(self, address: int, words: str) -> None:
        """Add the event of a program that says something of a block.

        Raises:
            RuntimeError: in PyTorch's words, if no block begins at `address`.
        """
        for allocation, storage in memory.live():
            note = note_of(allocation, storage)
            if note.address == address and note.requested:
                frames = _frames() if self.when >= When.ALLOC else None
                self._add("annotate", allocation.ordinal, note, note.requested, frames, words)
                return
        raise RuntimeError(f"annotateMemory: no live allocation found at pointer {address:#x}")

    def _add(
        self, action: str, ordinal: int, note: Note, size: int, frames: Frames | None, words: str | None = None
    ) -> None:
        if action in self.skip or not (size or action == "snapshot"):  # CUDA's allocator never sees an empty storage
            return
        event = {
            "action": action,
            "device_free" if action == "oom" else "addr": note.address,
            "size": size,
            "stream": note.stream,
            "time_us": time.time_ns() // 1000,
            "compile_context": _NO_CONTEXT,
            "user_metadata": metadata if words is None else words,
            "frames": frames,
        }
        self.events[ordinal].append(event)


metadata = ""  # a program's own words for what happens, which every event carries


def note_of(allocation: memory.Allocation, storage: torch.UntypedStorage) -> Note:
    """The note of a storage; one that came while nothing was recorded gets it now, without frames."""
    return getattr(allocation, "note", None) or Note(storage.data_ptr(), storage.nbytes(), 0)


def current() -> History | None:
    """The recording that a program has asked for, or None."""
    return memory.recorder if memory.recorder is not None and memory.recorder.asked_for else None


def record(when: When, most: int, skip: Collection[str], clear: bool) -> None:
    """Begin to record, or go on with other settings."""
    if current() is None or clear:
        memory.recorder = History(when, most, skip)
    else:
        memory.recorder.resize(when, most, skip)


def stop() -> None:
    """Record no more, and forget the events. The blocks that are held keep their frames."""
    memory.recorder = None
    note_pools()


def note_pools() -> None:
    """Note the pool of each storage while somebody uses pools, and nothing else where nothing else was asked for."""
    if current() is None and pools.are_used() != (memory.recorder is not None):
        memory.recorder = History(When.NEVER, 0) if pools.are_used() else None
        if memory.recorder is not None:
            memory.recorder.asked_for = False


def say(text: str) -> None:
    """Let all further events carry `text`."""
    global metadata
    metadata = text


def forget() -> None:
    """Leave everything as in a new process."""
    stop()
    say("")
    memory.observers.clear()


def _frames() -> Frames:
    """The calls that led here, without those inside of this package."""
    calls, frame = [], sys._getframe(2)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            calls.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back  # type: ignore[assignment]
    return calls
