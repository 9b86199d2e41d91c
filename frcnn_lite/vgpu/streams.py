"""Streams and events: every operator has finished when its call returns, so any order they could ask for holds."""

from __future__ import annotations

import threading
from typing import Any

import torch

from frcnn_lite.vgpu import devices

_HIGHEST = -3  # the priority of the most urgent streams PyTorch makes


class _Thread(threading.local):
    def __init__(self) -> None:
        self.current: dict[int, Stream] = {}


_thread = _Thread()


class Stream:
    """An ordered no-op in the place of `torch.Stream` and `torch.cuda.Stream`."""

    device_type = 1  # c10::DeviceType::CUDA

    def __init__(self, device: Any = None, priority: int = 0, stream_id: int | None = None, **_: Any) -> None:
        ordinal = devices.ordinal_of(device) if device is not None else devices.current()
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

    @property
    def cuda_stream(self) -> int:
        return self.stream_id

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
        return True

    def is_capturing(self) -> bool:
        return False

    def synchronize(self) -> None:
        """All work is done."""

    def wait_stream(self, stream: Any) -> None:
        """All work of the other stream is done."""

    def wait_event(self, event: Any) -> None:
        """All work before the event is done."""

    def record_event(self, event: Event | None = None) -> Event:
        event = Event() if event is None else event
        event.record(self)
        return event


class Event:
    """An event that has always happened. It knows no time, for virtual devices have none."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.device: torch.device | None = None

    def __repr__(self) -> str:
        return f"<torch.cuda.Event {id(self):#x}>"

    def record(self, stream: Stream | None = None) -> None:
        self.device = (stream or current(devices.current())).device

    def query(self) -> bool:
        return True

    def wait(self, stream: Stream | None = None) -> None:
        """The event has happened."""

    def synchronize(self) -> None:
        """The event has happened."""

    def elapsed_time(self, end: Event) -> float:
        raise RuntimeError("virtual GPUs have no times to measure: run on real GPUs for that")


def default(ordinal: int) -> Stream:
    """The default stream of a device."""
    return Stream(device=ordinal, stream_id=0)


def current(ordinal: int) -> Stream:
    """The stream current on a device in this thread."""
    stream = _thread.current.get(ordinal)
    return default(ordinal) if stream is None else stream


def make_current(stream: Stream) -> None:
    """Make a stream current on its device, and its device current."""
    devices.set_current(stream.device_index)
    _thread.current[stream.device_index] = stream
