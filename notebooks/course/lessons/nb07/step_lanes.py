"""What a rank does within a step, in order, and what it sends meanwhile: forward, backward, step, and the messages."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from course.kit.figures.palette import KIND_COLOURS, blend, gpu_colour, ink_on
from course.kit.figures.svg import FAINT, INK, Canvas, Figure

TOP, HEAD, CELL, STRIP, BETWEEN = 52, 24, 30, 52, 22
LETTER, PAD, NARROWEST, GAP = 6.7, 20, 64, 3
SENT, WAITS = "sent", "waits"
MESSAGE = KIND_COLOURS[0]  # a message is no device
SHARES = {"forward": 0.25, "backward": 0.55, "step": 1.0}  # how much of a lane's colour the cells of a phase have

Event = tuple[
    str, str
]  # (phase, what is ready then), or ("sent", what leaves: words, and more of them on a second line)


def step_lanes(
    lanes: Mapping[str, Sequence[Event]],
    title: str,
    gpus: Sequence[int] | None = None,
    ends: Sequence[str] | None = None,
    caption: str = "dark: a message leaves, and the rank goes on; dashed: it waits until the message is through",
) -> Figure:
    """Draw what happens in each lane from left to right: a cell for each event, and below it what is sent after it.

    A phase that ends in a message ends when the message is through: the lane waits, which is a dashed cell.

    lanes: name -> events in order, such as ("backward", "2.weight") or ("sent", "bucket 0"); events of one phase that
    follow each other stand under one heading. gpus: a GPU for each lane, which gives it its colour; None: grey.
    ends: words to the right of each lane.
    Raises ValueError for a lane without events or that begins with a message, and for gpus or ends of other length.
    """
    if not lanes or not all(lanes.values()):
        raise ValueError(f"`lanes` must each have an event, got {dict(lanes)}")
    for what, given in (("gpus", gpus), ("ends", ends)):
        if given is not None and len(given) != len(lanes):
            raise ValueError(f"`{what}` must have one for each of {len(lanes)} lanes, got {list(given)}")
    placed = {name: _place(name, events) for name, events in lanes.items()}
    left = 30 + 7.2 * max(map(len, lanes))
    words = [line for events in lanes.values() for _, told in events for line in told.splitlines()]
    phases = [phase for events in lanes.values() for phase, _ in events]
    column = max(NARROWEST, PAD + LETTER * max(map(len, [*words, *phases])))
    columns = max(place for places in placed.values() for _, _, place in places) + 1
    strips = [any(phase == SENT for phase, _ in events) for events in lanes.values()]
    height = TOP + len(lanes) * (HEAD + CELL + BETWEEN) + sum(strips) * STRIP + 16
    right = left + columns * column
    width = max(right + 14 + LETTER * max(map(len, ends or [""])), 40 + 8.6 * len(title), 40 + LETTER * len(caption))
    canvas = Canvas(width, height, title, _describe(placed, ends), at=(16, 28))
    y: float = TOP
    for row, (name, places) in enumerate(placed.items()):
        colour = FAINT if gpus is None else gpu_colour(gpus[row])
        _draw_lane(canvas, name, places, colour, left, column, y)
        if ends is not None:
            canvas.text(right + 6, y + HEAD + 20, ends[row], size=12)
        y += HEAD + CELL + BETWEEN + STRIP * strips[row]
    canvas.text(16, height - 10, caption, size=12, fill=FAINT)
    return canvas.figure()


def _place(name: str, events: Sequence[Event]) -> list[tuple[str, str, int]]:
    """Phase, words and column of each event; a message has the column of the event that it follows."""
    places: list[tuple[str, str, int]] = []
    column, last = -1, ""
    for k, (phase, told) in enumerate(events):
        if phase != SENT:
            column, last = column + 1, phase
        elif column < 0:
            raise ValueError(f"lane {name!r} begins with a message, and nothing is there to be sent")
        places.append((phase, told, column))
        if phase == SENT and (k + 1 == len(events) or events[k + 1][0] not in (SENT, last)):
            column += 1
            places.append((last, WAITS, column))
    return places


def _draw_lane(
    canvas: Canvas,
    name: str,
    places: Sequence[tuple[str, str, int]],
    colour: str,
    left: float,
    column: float,
    y: float,
) -> None:
    canvas.text(16, y + HEAD + 20, name, size=13, font_weight="bold")
    cells = [(phase, told, k) for phase, told, k in places if phase != SENT]
    for phase, group in groupby(cells, key=lambda cell: cell[0]):
        members = list(group)
        middle = left + (members[0][2] + members[-1][2] + 1) / 2 * column
        canvas.text(middle, y + HEAD - 8, phase, size=12, anchor="middle", fill=FAINT)
    for phase, told, k in cells:
        fill = blend(colour, SHARES.get(phase, 0.4))
        x = left + k * column + GAP
        waits = told == WAITS
        edge: dict[str, Any] = {"stroke": FAINT, "stroke_dasharray": "4 4"} if waits else {"stroke": INK}
        canvas.rect(x, y + HEAD, column - 2 * GAP, CELL, fill="none" if waits else fill, stroke_width=0.8, rx=4, **edge)
        ink = FAINT if waits else ink_on(fill)
        canvas.text(x + column / 2 - GAP, y + HEAD + 19, told, size=12, anchor="middle", fill=ink)
    floor = y + HEAD + CELL
    for phase, told, k in places:
        if phase == SENT:
            start = left + (k + 1) * column
            canvas.path(f"M{start:.1f} {floor - 4:.1f}v12", stroke=MESSAGE, stroke_width=2, fill="none")
            canvas.rect(start - 1, floor + 8, column - 4, 38, fill=MESSAGE, rx=4)
            lines = told.splitlines()
            for line, word in enumerate(lines):
                base = floor + 31 - 7 * (len(lines) - 1) + 14 * line
                canvas.text(start + column / 2 - 3, base, word, size=12, anchor="middle", fill=ink_on(MESSAGE))


def _describe(lanes: Mapping[str, Sequence[tuple[str, str, int]]], ends: Sequence[str] | None) -> str:
    told = []
    for row, (name, places) in enumerate(lanes.items()):
        words = ", ".join(f"{phase} {' '.join(what.split())}".rstrip() for phase, what, _ in places)
        told.append(f"{name}: {words}" + (f"; {ends[row]}" if ends is not None else ""))
    return ". ".join(told) + "."
