"""When the host gives work to the streams of a GPU, and when the GPU does it: a lane for the host, one for each stream.

The times are made up, and the order is not: a launch takes one unit of the host's time, a kernel four of its stream's,
and a kernel begins when it has been launched, its stream is free, and what its stream waits for has ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch

from course.kit.figures.palette import CPU_COLOUR, WRONG_COLOUR, blend, gpu_colour, ink_on
from course.kit.figures.svg import FAINT, INK, Canvas, Figure
from course.lessons.nb35.launches import HOST_WAITS, LAUNCH, STREAM_WAITS, Given

KERNEL = 4  # units that a kernel takes; a launch takes one
UNIT, LANE, CELL, LEFT, TOP = 36, 52, 32, 116, 48
HOST = "host"
HEAD = 22
CAPTION = "A number is a call: the host makes it, the GPU runs it later. Times are made up; the order is not."


class Box(NamedTuple):
    """Something that takes from `start` to `end`, in a lane; a wait of the host has the number 0."""

    lane: str
    number: int
    name: str
    start: int
    end: int


class Wait(NamedTuple):
    """A stream that waits: from the end of a kernel to the beginning of the next one of the other stream."""

    end: int
    lane: str
    start: int
    waiting: str


class _Program(NamedTuple):
    name: str
    boxes: list[Box]
    waits: list[Wait]

    @property
    def kernels(self) -> list[Box]:
        return [box for box in self.boxes if box.lane != HOST]

    @property
    def lanes(self) -> list[str]:
        return [HOST, *sorted({box.lane for box in self.kernels})]

    def broken(self, failed: str) -> int:
        """The number of the kernel that fails, one beyond the last if none does."""
        return min((box.number for box in self.kernels if box.name == failed), default=len(self.kernels) + 1)

    def draw(self, canvas: Canvas, top: float, broken: int) -> None:
        y = {lane: top + LANE * k for k, lane in enumerate(self.lanes)}
        for lane in self.lanes:
            canvas.text(16, y[lane] + 21, lane, size=13, font_weight="bold")
        for box in self.boxes:
            _draw_box(canvas, box, LEFT + UNIT * box.start, y[box.lane], broken)
        for wait in self.waits:
            _draw_wait(canvas, wait, y)

    def described(self, broken: int) -> str:
        told = [f"{lane}: {', '.join(self._words(lane, broken))}" for lane in self.lanes]
        told += [f"the {wait.waiting} waits for the {wait.lane}, until {wait.end}" for wait in self.waits]
        return "; ".join(filter(None, [self.name, *told])) + "."

    def _words(self, lane: str, broken: int) -> list[str]:
        ends = {True: " fails", False: ""} if lane != HOST else {True: "", False: ""}
        return [
            f"{box.number or ''} {box.name} from {box.start} to {box.end}".strip()
            + (" and does not run" if lane != HOST and box.number > broken else ends[box.number == broken])
            for box in self.boxes
            if box.lane == lane
        ]


def queue_lanes(programs: Mapping[str, Sequence[Given]], title: str, failed: str = "") -> Figure:
    """Draw what `launches` has noted, program below program.

    programs: what is written above each -> its steps. failed: the name of a kernel that fails. Those behind it do not
    run, and the host learns of it at its next wait.
    Raises ValueError for a program that launched nothing, and for a kernel that is not there.
    """
    drawn = {name: _Program(name, *schedule(given, failed)) for name, given in programs.items()}
    for name, program in drawn.items():
        if not program.kernels:
            raise ValueError(f"`programs` must each launch a kernel on a GPU; {name!r} does not")
        if failed and failed not in [box.name for box in program.kernels]:
            raise ValueError(f"`failed` must be one of {[box.name for box in program.kernels]}, got {failed!r}")
    last = max(box.end for program in drawn.values() for box in program.boxes)
    width = max(LEFT + UNIT * last + 16, 40 + 8.6 * len(title), 40 + 6.2 * len(CAPTION))
    height = TOP + sum(HEAD + LANE * len(program.lanes) for program in drawn.values()) + 14
    described = " ".join(program.described(program.broken(failed)) for program in drawn.values())
    canvas = Canvas(width, height, title, described, at=(16, 28))
    y: float = TOP
    for program in drawn.values():
        canvas.text(16, y + 12, program.name, size=13, fill=FAINT)
        program.draw(canvas, y + HEAD, program.broken(failed))
        y += HEAD + LANE * len(program.lanes)
    canvas.text(16, canvas.height - 10, CAPTION, size=12, fill=FAINT)
    return canvas.figure()


def schedule(given: Sequence[Given], failed: str = "") -> tuple[list[Box], list[Wait]]:
    """When everything begins and ends, and which stream waited for which; the host waits for a failure, not longer."""
    boxes: list[Box] = []
    waits: list[Wait] = []
    free: dict[str, int] = {}  # when a stream has done all that it was given
    pending: dict[str, tuple[int, str]] = {}  # what the next kernel of a stream waits for
    now = number = 0

    for step in given:
        own = _lane(step.stream)
        if step.what == LAUNCH:
            number += 1
            name = _short(step.name)
            boxes.append(Box(HOST, number, name, now, now + 1))
            now += 1
            end, of = pending.pop(own, (0, ""))
            start = max(now, free.get(own, 0), end)
            free[own] = start + KERNEL
            boxes.append(Box(own, number, name, start, free[own]))
            if of:
                waits.append(Wait(end, of, start, own))
        elif step.what == STREAM_WAITS and (other := _lane(step.other)) in free:
            pending[own] = (free[other], other)
        elif step.what == HOST_WAITS and free.get(own, 0) > now:
            ends = min((box.end for box in boxes if box.lane == own and box.name == failed), default=free[own])
            boxes.append(Box(HOST, 0, f"{step.name} waits", now, ends))
            now = ends
    return boxes, waits


def _lane(stream: torch.cuda.Stream | None) -> str:
    return "default stream" if stream is not None and stream.cuda_stream == 0 else "side stream"


def _short(name: str) -> str:
    """The name of an operator without what only its implementation needs."""
    return name.strip("_").removesuffix("_forward").removesuffix("_data")


def _draw_box(canvas: Canvas, box: Box, x: float, y: float, broken: int) -> None:
    width = UNIT * (box.end - box.start) - 3
    if box.lane == HOST:
        waits = box.number == 0
        fill = "none" if waits else blend(CPU_COLOUR, 0.4)
        canvas.rect(
            x, y, width, CELL, fill=fill, rx=4, stroke=FAINT, stroke_dasharray="4 4" if waits else None, stroke_width=1
        )
        canvas.text(x + width / 2, y + 21, box.name if waits else box.number, size=12, anchor="middle")
        return
    over = box.number > broken
    fill = WRONG_COLOUR if box.number == broken else blend(gpu_colour(0), 0.15 if over else 0.6)
    canvas.rect(x, y, width, CELL, fill=fill, rx=4, stroke=INK, stroke_width=0.8)
    if over:
        canvas.hatch(x, y, width, CELL, stroke=FAINT, stroke_width=0.6)
    canvas.text(x + width / 2, y + 20, f"{box.number} {box.name}", size=11, anchor="middle", fill=ink_on(fill))


def _draw_wait(canvas: Canvas, wait: Wait, y: Mapping[str, float]) -> None:
    """An arrow from the edge of the kernel that is waited for to the beginning of the one that waits."""
    upwards = y[wait.waiting] < y[wait.lane]
    x1, y1 = LEFT + UNIT * wait.end - 14, y[wait.lane] + (0 if upwards else CELL)
    x2, y2 = LEFT + UNIT * wait.start - 1, y[wait.waiting] + CELL / 2
    canvas.polyline([(x1, y1), (x1, y2), (x2 - 4, y2)], stroke=INK)
    canvas.path(f"M{x2 - 6} {y2 - 3.5}L{x2} {y2}L{x2 - 6} {y2 + 3.5}z", fill=INK)
