"""On which stream a step of backward runs: autograd takes the one on which the step's forward ran.

Where that is not the stream of the caller, autograd lets each wait for the other: before the step for what it is given,
after it for what it returns. Virtual GPUs compute backward on the caller's stream, so the stream is looked up here.
"""

from __future__ import annotations

import bisect
import threading
from collections import defaultdict

import torch

from vgpu.machine import streams
from vgpu.machine.streams import Stream
from vgpu.racing.detector import Detector

_OF_LEAVES = 1 << 62  # above it are the numbers of the steps that only accumulate gradients


class _Thread(threading.local):
    """What a thread has chosen: autograd numbers the steps of each thread, and runs backward in the caller's."""

    def __init__(self) -> None:
        self.task = -1  # of autograd, -1 outside of backward
        self.callers: dict[int, Stream] = {}  # the current streams when backward began
        self.numbers: defaultdict[int, list[int]] = defaultdict(list)  # by device: the first step after each change
        self.chosen: defaultdict[int, list[Stream]] = defaultdict(list)  # and the stream that was chosen then


class Backward:
    """The streams of forward, by the numbers of its steps."""

    def __init__(self, detector: Detector) -> None:
        self._detector, self._thread = detector, _Thread()

    def changed(self, stream: Stream) -> None:
        """A stream is about to become current."""
        thread = self._thread
        before = self._current(stream.device_index)
        if not thread.chosen[stream.device_index]:
            self._add(0, before)
        self._add(torch._C._autograd._get_sequence_nr(), stream)

    def stream(self, ordinal: int) -> Stream:
        """The stream on which an operator runs now on a device."""
        current = self._current(ordinal)
        if self._thread.task == -1 or current != self._thread.callers.setdefault(ordinal, current):
            return current  # of a hook that has chosen one itself
        forward = self._of_step(ordinal, current)
        if forward != current:
            self._detector.wait_for(forward, [current])
        return forward

    def done(self, ordinal: int, stream: Stream) -> None:
        """An operator has been given to a stream that `stream` returned."""
        current = streams.current(ordinal)
        if current != stream:
            self._detector.wait_for(current, [stream])

    def _current(self, ordinal: int) -> Stream:
        """The current stream, and whether backward has begun since the last question."""
        task = torch._C._current_graph_task_id()
        if task != self._thread.task:
            self._thread.task = task
            self._thread.callers = {k: streams.current(k) for k in range(streams.devices.count())}
        return streams.current(ordinal)

    def _of_step(self, ordinal: int, otherwise: Stream) -> Stream:
        node, numbers = torch._C._current_autograd_node(), self._thread.numbers[ordinal]
        if node is None or not numbers or not 0 <= node._sequence_nr() < _OF_LEAVES:
            return otherwise
        return self._thread.chosen[ordinal][bisect.bisect_right(numbers, node._sequence_nr()) - 1]

    def _add(self, number: int, stream: Stream) -> None:
        numbers, chosen = self._thread.numbers[stream.device_index], self._thread.chosen[stream.device_index]
        if numbers and numbers[-1] == number:  # no step of forward ran on the one before
            chosen[-1] = stream
        elif not chosen or chosen[-1] != stream:
            numbers.append(number)
            chosen.append(stream)
