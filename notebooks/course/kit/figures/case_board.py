"""A board of cases: one row a case, one column a trial, and in each cell how the trial ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from course.kit.figures.palette import KIND_COLOURS, blend
from course.kit.figures.svg import FAINT, INK, RULE, Canvas, Figure

TOP, HEADER, ROW, GAP = 44, 46, 34, 5
LETTER, PAD, MIN_COLUMN = 6.6, 24, 88
COLOURS = dict(zip(("fits", "right", "raises", "wrong"), KIND_COLOURS, strict=False))  # no GPU's
SIGNS = {"fits": "✓", "right": "✓", "raises": "✗", "wrong": "≠"}


@dataclass(frozen=True)
class Ending:
    """How a trial ended: `kind` is "right", "raises", "wrong" (no error, and a different result) or "none" (not
    reached), or "fits" where a column asks whether a case fits. `words` stand in the cell, by default the kind."""

    kind: str
    words: str = ""

    def __post_init__(self) -> None:
        if self.kind not in (*COLOURS, "none"):
            raise ValueError(f"`kind` must be one of {', '.join((*COLOURS, 'none'))}, got {self.kind!r}")

    @property
    def shown(self) -> str:
        """What the cell says; empty where the trial was not reached."""
        if self.kind == "none":
            return self.words
        return f"{SIGNS[self.kind]} {self.words or self.kind}"


Cells = Mapping[tuple[str, str], Ending]


def case_board(cases: Sequence[str], trials: Mapping[str, Sequence[str]], cells: Cells, title: str) -> Figure:
    """Draw `cells[case, trial]` for every case, trials in groups: {"under DataParallel": ["before", "after"], ...}.

    A trial's name is unique on the board only within its group: cells are keyed by "group: trial". Results that are
    silently wrong are hatched. Raises ValueError when a cell is missing.
    """
    columns = [(group, trial) for group, names in trials.items() for trial in names]
    missing = [f"({c}, {g}: {t})" for c in cases for g, t in columns if (c, f"{g}: {t}") not in cells]
    if missing or not cases or not columns:
        raise ValueError(f"want a cell for every case and trial; missing: {', '.join(missing) or 'all'}")
    left = 26 + LETTER * max(map(len, cases))
    words = [cells[c, f"{g}: {t}"].shown for c in cases for g, t in columns]
    width = max(MIN_COLUMN, PAD + LETTER * max(map(len, [*words, *(trial for _, trial in columns)])))
    height = TOP + HEADER + ROW * len(cases) + 12
    size = (max(left + width * len(columns) + 14, 40 + 8.6 * len(title)), height)
    canvas = Canvas(*size, title, _describe(cases, columns, cells), at=(16, 26))
    _draw_heads(canvas, trials, left, width)
    for row, case in enumerate(cases):
        top = TOP + HEADER + row * ROW
        canvas.text(16, top + ROW / 2 + 3, case, size=12)
        for k, (group, trial) in enumerate(columns):
            _draw_cell(canvas, cells[case, f"{group}: {trial}"], left + k * width, top, width)
    return canvas.figure()


def _draw_heads(canvas: Canvas, trials: Mapping[str, Sequence[str]], left: float, width: float) -> None:
    for group, names in trials.items():
        span = width * len(names)
        canvas.text(left + span / 2, TOP + 12, group, size=12, anchor="middle", font_weight="bold")
        canvas.line(left + GAP, TOP + 18, left + span - GAP, TOP + 18, stroke=RULE)
        for k, name in enumerate(names):
            canvas.text(left + (k + 0.5) * width, TOP + 34, name, size=12, anchor="middle", fill=FAINT)
        left += span


def _draw_cell(canvas: Canvas, ending: Ending, left: float, top: float, width: float) -> None:
    x, y, w, h = left + GAP, top + GAP / 2, width - 2 * GAP, ROW - GAP
    if ending.kind == "none":
        canvas.text(left + width / 2, top + ROW / 2 + 3, ending.shown, size=12, anchor="middle", fill=FAINT)
        return
    colour = COLOURS[ending.kind]
    canvas.rect(x, y, w, h, fill=blend(colour, 0.16), stroke=colour, stroke_width=1, rx=4)
    if ending.kind == "wrong":
        canvas.hatch(x, y, w, h, stroke=blend(colour, 0.45))
        canvas.rect(x + 8, y + 6, w - 16, h - 12, fill=blend(colour, 0.16), rx=3)
    canvas.text(left + width / 2, top + ROW / 2 + 3, ending.shown, size=12, anchor="middle", fill=INK)


def _describe(cases: Sequence[str], columns: Sequence[tuple[str, str]], cells: Cells) -> str:
    told = []
    for case in cases:
        ends = ((f"{g}: {t}", cells[case, f"{g}: {t}"]) for g, t in columns)
        told.append(f"{case}: " + ", ".join(f"{name} {end.words or end.kind}" for name, end in ends))
    return "; ".join(told) + "."
