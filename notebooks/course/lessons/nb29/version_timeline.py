"""The version counter of one tensor over a forward pass: who wrote, who saved, and what backward compares."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from course.kit.figures.palette import KIND_COLOURS, RIGHT_COLOUR, WRONG_COLOUR
from course.kit.figures.svg import FAINT, RULE, Canvas, Figure

LEFT, TOP, ROW, CODE, STEP, FOOT = 24, 74, 34, 330, 46, 34


class VersionEvent(NamedTuple):
    """A line of the program that wrote the tensor or saved it, and the version afterwards."""

    code: str
    kind: Literal["write", "save"]
    version: int


def version_timeline(events: Sequence[VersionEvent], title: str) -> Figure:
    """One row a line of the program, one column a version; a save left of the last column fails at backward."""
    if not events:
        raise ValueError("`events` is empty: there is no version to draw")
    last = max(event.version for event in events)
    size = LEFT + CODE + (last + 1) * STEP + 210, TOP + len(events) * ROW + FOOT
    canvas = Canvas(*size, title, _in_words(events, last), at=(LEFT, 28))
    for version in range(last + 1):
        x = LEFT + CODE + (version + 0.5) * STEP
        canvas.text(x, TOP - 16, f"v{version}", anchor="middle", fill=FAINT)
        canvas.line(x, TOP - 8, x, TOP + len(events) * ROW, stroke=RULE)
    for k, event in enumerate(events):
        _draw(canvas, event, TOP + (k + 0.5) * ROW, last)
    canvas.text(
        LEFT, canvas.height - 12, f"At backward the tensor is at version {last}; each save is compared with it.", 12
    )
    return canvas.figure()


def _draw(canvas: Canvas, event: VersionEvent, y: float, last: int) -> None:
    x, beyond = LEFT + CODE + (event.version + 0.5) * STEP, LEFT + CODE + (last + 1) * STEP + 12
    canvas.text(LEFT, y + 4, event.code, font_family="monospace", size=12)
    if event.kind == "write":
        canvas.line(x - STEP, y, x - 7, y, stroke=KIND_COLOURS[3], stroke_width=3)
        canvas.path(f"M{x - 12:.0f} {y - 6:.0f}L{x:.0f} {y:.0f}L{x - 12:.0f} {y + 6:.0f}Z", fill=KIND_COLOURS[3])
        canvas.text(beyond, y + 4, "writes: version + 1", fill=FAINT)
        return
    fits = event.version == last
    canvas.circle(x, y, 8, fill=RIGHT_COLOUR if fits else WRONG_COLOUR)
    words = "saved, still good" if fits else f"saved at {event.version}, now {last}: error"
    canvas.text(beyond, y + 4, words, font_weight=None if fits else "bold")


def _in_words(events: Sequence[VersionEvent], last: int) -> str:
    told = [
        f"{event.code}: {'written, version becomes' if event.kind == 'write' else 'saved at version'} {event.version}"
        for event in events
    ]
    return "; ".join(told) + f". At backward the version is {last}."
