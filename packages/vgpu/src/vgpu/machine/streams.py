"""Streams and events: an operator has finished when its call returns, so any order they could ask for holds.

Only `torch.cuda._sleep` keeps a stream busy, for as long as it says, and whoever waits for that stream waits.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import torch

from vgpu.base import errors, record
from vgpu.machine import captures, contexts, devices, waiting

_HIGHEST = -3  # the priority of the most urgent streams PyTorch makes
_CLOCK = 2.5e8  # cycles a second of a virtual GPU, which nothing but `sleep` counts

busy: dict[Stream, float] = {}  # streams that sleep or slept, and until when on the clock of `time.monotonic`
_current = threading.local()  # the streams that are current in a thread, by the name of their device


class Stream:
    """In the place of `torch.Stream` and `torch.cuda.Stream`."""

    device_type = 1  # c10::DeviceType::CUDA

    def __init__(self, device: Any = None, priority: int = 0, stream_id: int | None = None, **more: Any) -> None:
        index = more.get("device_index")
        if index is not None and not 0 <= index < devices.count():
            raise RuntimeError(f"Device index value {index} is out of index range [0, {devices.count()})")
        ordinal = devices.ordinal_of(device if index is None else index)
        self.device_index = devices.check(devices.current() if ordinal is None else ordinal)
        self.device = devices.PUBLIC[self.device_index]
        if priority > 0:
            raise RuntimeError(f"Expected cuda stream priority to be less than or equal to 0, got {priority}")
        self.priority = max(priority, _HIGHEST)
        self.stream_id = id(self) if stream_id is None else stream_id
        self._outer: list[tuple[int, Stream]] = []

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The lowest and the highest priority, as GPUs of the last years have them."""
        return 0, _HIGHEST

    cuda_stream = native_handle = property(lambda self: self.stream_id)

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.stream_id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and hash(self) == hash(other)

    def __hash__(self) -> int:
        return hash((self.device_index, self.stream_id))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.stream_id:#x}>"

    def __enter__(self) -> Stream:
        self._outer.append((devices.current(), current(self.device_index)))
        make_current(self)
        return self

    def __exit__(self, *_: object) -> None:
        ordinal, stream = self._outer.pop()
        make_current(stream)
        devices.set_current(ordinal)

    def query(self) -> bool:
        """True where the stream does not sleep."""
        captures.forbid_waiting()
        contexts.reach(self.device_index)
        return busy.get(self, 0.0) <= time.monotonic()

    def is_capturing(self) -> bool:
        """True while the stream captures a CUDA graph."""
        return captures.of(self) is not None

    def synchronize(self) -> None:
        """Wait until the stream does not sleep any more."""
        waiting.wait(self.device_index)
        _wait(busy.get(self, 0.0))

    def wait_stream(self, stream: Any) -> None:
        """Sleep as long as `stream` does."""
        self.wait_event(stream.record_event())

    def wait_event(self, event: Any) -> None:
        """Sleep until `event` has happened."""
        event.wait(self)

    def record_event(self, event: Event | None = None) -> Event:
        """Record `event`, or a new one, on this stream, and return it."""
        event = Event() if event is None else event
        event.record(self)
        return event


class ExternalStream(Stream):
    """In the place of `torch.cuda.ExternalStream`: the stream that another library has at `stream_ptr`."""

    def __init__(self, stream_ptr: int, device: Any = None, **more: Any) -> None:
        super().__init__(device, stream_id=stream_ptr, **more)


class Event:
    """In the place of `torch.Event` and `torch.cuda.Event`. It knows the host's time, for virtual devices have none."""

    def __init__(self, device: Any = None, *_: Any, enable_timing: bool = False, **__: Any) -> None:
        # A torch.Event is given its device, and so knows it before it is recorded.
        self.device = torch.device(device) if isinstance(device, (str, torch.device)) else None
        self._timed = enable_timing or device is True  # the first argument of torch.cuda.Event is enable_timing
        self._time = 0.0  # when it happens; 0 before it is recorded
        self._captured: tuple[captures.Capture, captures.Moment] | None = None  # where a graph captures it

    cuda_event = event_id = property(lambda self: id(self) if self._time else 0)

    def __repr__(self) -> str:
        return f"<torch.cuda.Event {f'{id(self):#x}' if self._time else 'uninitialized'}>"

    def record(self, stream: Stream | None = None) -> None:
        """Let the event happen when what `stream` does now is done; without it, the current stream."""
        stream = stream or current(devices.current())
        contexts.launch(stream.device_index)
        self.device = stream.device
        capture = captures.of(stream)
        self._captured = None if capture is None else (capture, capture.moment(stream))
        self._time = max(time.monotonic(), busy.get(stream, 0.0))

    def query(self) -> bool:
        """True where the event has happened, or was never recorded."""
        self._reach()
        return self._time <= time.monotonic()

    def wait(self, stream: Stream | None = None) -> None:
        """Let `stream`, or the current one, sleep until the event has happened."""
        stream = stream or current(devices.current())
        contexts.launch(stream.device_index)
        self._order(stream)
        if self._time > time.monotonic():
            busy[stream] = max(self._time, busy.get(stream, 0.0))

    def synchronize(self) -> None:
        """Wait until the event has happened."""
        self._reach()
        _wait(self._time)

    def _order(self, stream: Stream) -> None:
        """Let a stream join the capture that the event belongs to."""
        if self._captured is not None:
            capture, moment = self._captured
            if not capture.is_active():
                raise errors.event_is_captured()
            capture.wait(stream, moment)
        elif self._time and (late := captures.of(stream)) is not None:
            raise late.refuse(errors.capture_is_isolated())

    def _reach(self) -> None:
        if self._captured is not None:
            raise self._captured[0].refuse(errors.event_is_captured())
        if self.device is not None and self._time:
            contexts.reach(self.device.index)

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds between two events, on the host; the first use says that they are no GPU's."""
        if not (self._timed and end._timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if not (self._time and end._time):
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end.query()):
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        if self.device != end.device:
            raise errors.invalid_handle()
        record.write(record.NOT_SIMULATED, "Event.elapsed_time, which gives the host's time")
        errors.note("virtual GPUs have no times: this is how long the host took")
        return (end._time - self._time) * 1e3


def default(ordinal: int) -> Stream:
    """The default stream of a device."""
    return Stream(device_index=ordinal, stream_id=0)


def current(ordinal: int) -> Stream:
    """The stream current on a device in this thread."""
    return getattr(_current, f"cuda:{ordinal}", None) or default(ordinal)


def make_current(stream: Stream) -> None:
    """Make a stream current on its device, and its device current."""
    devices.set_current(stream.device_index)
    setattr(_current, str(stream.device), stream)


def sleep(cycles: int) -> None:
    """`torch.cuda._sleep`: keep the current stream busy."""
    stream = current(devices.current())
    busy[stream] = max(time.monotonic(), busy.get(stream, 0.0)) + cycles / _CLOCK


def synchronize(ordinal: int) -> None:
    """Wait for all streams of a device."""
    captures.forbid_waiting()
    contexts.reach(ordinal)
    _wait(max((until for stream, until in list(busy.items()) if stream.device_index == ordinal), default=0.0))


def _wait(until: float) -> None:
    while (left := until - time.monotonic()) > 0:
        time.sleep(left)
