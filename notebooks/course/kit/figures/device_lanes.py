"""Threads as lanes, their events as columns, each coloured by the device that was current: who owns `cuda`."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from course.kit.figures.palette import blend, gpu_colour, ink_on
from course.kit.figures.svg import FAINT, INK, Canvas, Figure

TOP, HEADER, LANE_HEIGHT, CELL_HEIGHT, CELL_GAP = 44, 26, 44, 30, 6
LETTER, PAD, MIN_COLUMN = 6.4, 26, 92


@dataclass(frozen=True)
class Lane:
    """A thread: its `name`, the GPU it should work on (None: any), and event -> the device that was current then.

    `ended`: how it came to its end, "raises" for instance, where that is to be drawn after its last event.
    """

    name: str
    home: int | None
    current: Mapping[str, int]
    ended: str = ""


@dataclass
class DeviceLog:
    """Current devices of several threads, noted by the threads themselves.

    `lanes` come in the order of `names`, whichever thread was faster, so that what is drawn does not depend on a race.
    """

    names: Sequence[str]
    _noted: dict[str, dict[str, int]] = field(default_factory=dict)
    _homes: dict[str, int] = field(default_factory=dict)
    _ended: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, name: str, event: str, home: int | None = None) -> None:
        """Note which CUDA device is current in the calling thread; `home` is the one it should work on.

        Raises ValueError for a name that is not among `names`.
        """
        self._check(name)
        device = torch.cuda.current_device()
        with self._lock:
            self._noted.setdefault(name, {})[event] = device
            if home is not None:
                self._homes[name] = home

    def end(self, name: str, words: str) -> None:
        """Note how a thread came to its end. Raises ValueError for a name that is not among `names`."""
        self._check(name)
        with self._lock:
            self._ended[name] = words

    def _check(self, name: str) -> None:
        if name not in self.names:
            raise ValueError(f"`name` is {name!r}; this log has lanes for {', '.join(self.names)}")

    @property
    def lanes(self) -> list[Lane]:
        """One lane for each name, with the events that its thread noted."""
        with self._lock:
            return [
                Lane(n, self._homes.get(n), dict(self._noted.get(n, {})), self._ended.get(n, "")) for n in self.names
            ]


def device_lanes(
    lanes: Sequence[Lane],
    events: Sequence[str],
    title: str,
    what: str = "Current device",
    away: str = "hatched: current, but not where the weights are",
) -> Figure:
    """Draw who had which device current: a row for each lane, a column for each of `events`, from left to right.

    A device other than the lane's home is hatched, and `away` says so below. The description begins with `what`, which
    says what the devices are where they are not those that were current.
    Raises ValueError when a lane noted an event that is not among `events`, or when there is nothing to draw.
    """
    unknown = sorted({event for lane in lanes for event in lane.current} - set(events))
    if unknown:
        raise ValueError(f"`events` lacks {', '.join(unknown)}: give them in the order in which they shall be drawn")
    if not lanes or not events:
        raise ValueError(f"want `lanes` and `events`, got {len(lanes)} lanes and {len(events)} events")
    homes = {lane.home for lane in lanes}
    shared = len(lanes) > 1 and len(homes) == 1 and None not in homes
    labels = [lane.name if shared else _label(lane) for lane in lanes]
    if shared:
        away = f"{away} (cuda:{homes.pop()})"
    left = 30 + LETTER * _longest(labels)
    column = max(MIN_COLUMN, LETTER * _longest(events) + PAD)
    hatched = any(_is_away(lane, device) for lane in lanes for device in lane.current.values())
    height = TOP + HEADER + len(lanes) * LANE_HEIGHT + (26 if hatched else 10)
    width = max(left + len(events) * column + 10, 60 + len(title) * 9.4)
    if hatched:
        width = max(width, left + len(away) * 6.8 + 16)
    canvas = Canvas(width, height, title, f"{what}. {_describe(lanes, events)}", at=(16, 26))
    for k, event in enumerate(events):
        canvas.text(left + (k + 0.5) * column, TOP + 14, event, size=12, anchor="middle", fill=FAINT)
    for row, (lane, label) in enumerate(zip(lanes, labels, strict=True)):
        _draw_lane(canvas, lane, label, events, left, column, TOP + HEADER + row * LANE_HEIGHT)
    if hatched:
        canvas.text(left + CELL_GAP, height - 14, away, size=12, fill=FAINT)
    return canvas.figure()


def _draw_lane(
    canvas: Canvas, lane: Lane, label: str, events: Sequence[str], left: float, column: float, top: float
) -> None:
    """Cells on a line from the thread's first event to its last, and how it ended in the column after that."""
    middle = top + CELL_HEIGHT / 2
    canvas.text(16, middle + 4, label, size=12)
    seen = [k for k, event in enumerate(events) if event in lane.current]
    if lane.ended and len(seen) < len(events):
        after = seen[-1] + 1 if seen else 0
        canvas.text(left + (after + 0.5) * column, middle + 4, lane.ended, size=12, anchor="middle", fill=FAINT)
    if seen:
        canvas.line(left + (seen[0] + 0.5) * column, middle, left + (seen[-1] + 0.5) * column, middle, stroke=FAINT)
    for k in seen:
        device = lane.current[events[k]]
        x, width, colour = left + k * column + CELL_GAP, column - 2 * CELL_GAP, gpu_colour(device)
        canvas.rect(x, top, width, CELL_HEIGHT, fill=colour, stroke=INK, stroke_width=0.8, rx=5)
        if _is_away(lane, device):
            canvas.rect(x, top, width, CELL_HEIGHT, fill=blend(colour, 0.3), stroke=INK, stroke_width=0.8, rx=5)
            canvas.hatch(x, top, width, CELL_HEIGHT, stroke=blend(colour, 0.75))
            canvas.rect(x + width / 2 - 26, top + 6, 52, CELL_HEIGHT - 12, fill=colour, rx=4)
        canvas.text(x + width / 2, middle + 4, f"cuda:{device}", size=12, anchor="middle", fill=ink_on(colour))


def _label(lane: Lane) -> str:
    return lane.name if lane.home is None else f"{lane.name}, weights on cuda:{lane.home}"


def _is_away(lane: Lane, device: int) -> bool:
    return lane.home is not None and device != lane.home


def _longest(words: Iterable[str]) -> int:
    return max(map(len, words))


def _describe(lanes: Sequence[Lane], events: Sequence[str]) -> str:
    """Every lane in words: event and device, and where that is not the lane's own."""
    told = []
    for lane in lanes:
        seen = [
            f"{event} cuda:{lane.current[event]}" + (" (not its own)" if _is_away(lane, lane.current[event]) else "")
            for event in events
            if event in lane.current
        ]
        if lane.ended:
            seen.append(lane.ended)
        told.append(f"{_label(lane)}: {', '.join(seen) or 'nothing noted'}")
    return "; ".join(told)
