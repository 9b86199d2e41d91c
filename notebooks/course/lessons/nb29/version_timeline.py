"""The version counter of one tensor over a part of a program: who wrote, who saved, and what backward compares."""

import linecache
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch

from course.kit.figures.palette import KIND_COLOURS, RIGHT_COLOUR, WRONG_COLOUR
from course.kit.figures.svg import FAINT, RULE, Canvas, Figure

TORCH = str(Path(torch.__file__).parent)
LEFT, TOP, ROW, LETTER, STEP, FOOT, WORDS = 20, 74, 34, 7.3, 42, 34, 205
Entry = tuple[Literal["write", "save"], str, int]  # the line, and the version before it


class VersionEvent(NamedTuple):
    """A line that wrote to the memory of a tensor or had it saved, and the version afterwards.

    "past" is a write that the counter did not see.
    """

    code: str
    kind: Literal["write", "save", "past"]
    version: int


def calling_line(note: Callable[..., Any]) -> str:
    """The innermost line of the program that is neither torch's nor in the cell or file of `note`."""
    ours, frame = note.__code__.co_filename, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((TORCH, ours)):
        frame = frame.f_back
    return linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()


def version_events(entries: Sequence[Entry], last: int) -> list[VersionEvent]:
    """What was noted before each line, as what was true after it. `last` is the version at the end."""
    after = [*(version for _, _, version in entries[1:]), last]
    events = []
    for (kind, code, before), version in zip(entries, after, strict=True):
        counted = kind == "save" or version > before
        events.append(VersionEvent(code, kind if counted else "past", version))
    return events


def version_timeline(entries: Sequence[Entry], last: int, title: str) -> Figure:
    """One row a line of the program, one column a version; a save left of the last column fails at backward.

    A write past the counter is dashed, and stays in its column.
    """
    if not entries:
        raise ValueError("`entries` is empty: there is no version to draw")
    events = version_events(entries, last)
    width = LETTER * max(len(event.code) for event in events) + 12
    size = LEFT + width + (last + 1) * STEP + WORDS, TOP + len(events) * ROW + FOOT
    words = f"At backward the counter is at {last}, and each save is compared with it."
    canvas = Canvas(max(size[0], 40 + LETTER * len(words)), size[1], title, _in_words(events, last), at=(LEFT, 28))
    for version in range(last + 1):
        x = LEFT + width + (version + 0.5) * STEP
        canvas.text(x, TOP - 16, f"v{version}", anchor="middle", fill=FAINT)
        canvas.line(x, TOP - 8, x, TOP + len(events) * ROW, stroke=RULE)
    for k, event in enumerate(events):
        _draw(canvas, event, LEFT + width, TOP + (k + 0.5) * ROW, last)
    canvas.text(LEFT, canvas.height - 12, words, 12)
    return canvas.figure()


def _draw(canvas: Canvas, event: VersionEvent, left: float, y: float, last: int) -> None:
    x, beyond = left + (event.version + 0.5) * STEP, left + (last + 1) * STEP + 10
    canvas.text(LEFT, y + 4, event.code, font_family="monospace", size=12)
    if event.kind == "save":
        fits = event.version == last
        canvas.circle(x, y, 8, fill=RIGHT_COLOUR if fits else WRONG_COLOUR)
        words = "saved; equal" if fits else f"saved at {event.version}, now {last}: error"
        canvas.text(beyond, y + 4, words, font_weight=None if fits else "bold")
    elif event.kind == "write":
        canvas.line(x - STEP, y, x - 7, y, stroke=KIND_COLOURS[3], stroke_width=3)
        canvas.path(f"M{x - 12:.0f} {y - 6:.0f}L{x:.0f} {y:.0f}L{x - 12:.0f} {y + 6:.0f}Z", fill=KIND_COLOURS[3])
        canvas.text(beyond, y + 4, "writes: version + 1", fill=FAINT)
    else:
        canvas.rect(x - 15, y - 9, 30, 18, fill="none", stroke=WRONG_COLOUR, stroke_width=2, stroke_dasharray="5 3")
        canvas.text(beyond, y + 4, "writes past the counter", font_weight="bold")


def _in_words(events: Sequence[VersionEvent], last: int) -> str:
    told = {
        "write": "written, version becomes {}",
        "save": "saved at version {}",
        "past": "written past the counter, which stays at {}",
    }
    lines = [f"{event.code}: {told[event.kind].format(event.version)}" for event in events]
    return "; ".join(lines) + f". At backward the version is {last}."
