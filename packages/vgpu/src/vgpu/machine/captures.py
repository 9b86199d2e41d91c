"""Which streams capture a CUDA graph, who has joined them, and what a program may not do meanwhile.

`graphs/` records what a capture is given. This file knows who captures, and is asked by streams, events, generators and
those who wait for a device.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import Any

from vgpu.base import errors

Stream = Any  # of streams.py, which imports this file
Moment = dict[Stream, int]  # how far the streams of a capture have come


class Capture:
    """What is captured between `capture_begin` and `capture_end`.

    Attributes:
        origin: the stream on which the capture began.
        steps: how many calls each stream was given, of those that belong to the capture.
        failed: whether the program did what no capture allows. Nothing comes of it then.
    """

    def __init__(self, origin: Stream) -> None:
        self.origin, self.failed = origin, False
        self.steps: Moment = {origin: 0}
        self._known: defaultdict[Stream, Moment] = defaultdict(dict)

    def is_active(self) -> bool:
        """Whether it has not ended."""
        return self in _active

    def launch(self, stream: Stream) -> None:
        """One of the streams was given a call."""
        self.steps[stream] += 1

    def moment(self, stream: Stream) -> Moment:
        """What is done when all is done that a stream was given."""
        return {**self._known[stream], stream: self.steps[stream]}

    def wait(self, stream: Stream, moment: Moment) -> None:
        """Let a stream wait for a moment, and join the capture if it has not."""
        self.steps.setdefault(stream, 0)
        known = self._known[stream]
        known.update({other: max(step, known.get(other, 0)) for other, step in moment.items()})

    def has_unjoined(self) -> bool:
        """Whether a stream was given calls for which the first stream does not wait."""
        known = self._known[self.origin]
        return any(step > known.get(other, 0) for other, step in self.steps.items() if other != self.origin)

    def refuse(self, error: RuntimeError) -> RuntimeError:
        """An error that ends the capture: whatever comes next fails, too."""
        self.failed = True
        return error


class _Thread(threading.local):
    capture: Capture | None = None


_thread = _Thread()
_active: list[Capture] = []  # of all threads


def here() -> Capture | None:
    """What this thread captures."""
    return _thread.capture if _active else None


def of(stream: Stream) -> Capture | None:
    """The capture that a stream belongs to."""
    if not _active:
        return None
    return next((capture for capture in list(_active) if stream in capture.steps), None)


def is_any() -> bool:
    """Whether any thread captures."""
    return bool(_active)


def begin(capture: Capture) -> None:
    """Let this thread capture."""
    _active.append(capture)
    _thread.capture = capture


def end(capture: Capture) -> None:
    """Let the capture be over."""
    if capture in _active:
        _active.remove(capture)
    if _thread.capture is capture:
        _thread.capture = None


def forget() -> None:
    """Let nobody capture."""
    _active.clear()
    _thread.capture = None


def forbid_waiting() -> None:
    """Raise where the host is about to wait for a device: a capture computes nothing that it could wait for."""
    capture = here()
    if capture is not None:
        raise capture.refuse(errors.stream_captures()) from None


def forbid_pageable() -> None:
    """Raise where pageable memory of the host is about to be copied to a device or from there."""
    if here() is not None:
        raise RuntimeError(
            "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is pinned. "
            "Please use tensor.pin_memory() or allocate the tensor with pin_memory=True."
        ) from None


def forbid(attempt: str) -> None:
    """Raise where a generator is asked for what it does not know while a graph is captured."""
    if here() is not None:
        raise RuntimeError(
            f"{attempt} during CUDA graph capture. If you need this call to be captured, please file an issue. Current "
            "cudaStreamCaptureStatus: cudaStreamCaptureStatusActive"
        )
