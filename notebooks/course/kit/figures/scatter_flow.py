"""Rows of a batch falling into the lanes of their GPUs, and what comes back.

Rows that were cut off and copied, but that no replica was ever called with, are hatched.
"""

from collections.abc import Sequence
from typing import Any

from course.kit.figures.digits import cast, draw_digit
from course.kit.figures.flow import Flow
from course.kit.figures.palette import LOST_COLOUR, blend, gpu_colour, ink_on
from course.kit.figures.svg import FAINT, INK, PAPER, RULE, Canvas, Figure

GUTTER = 92  # left of the columns: names of the lanes
LETTER = 6.6  # width of one at the size of the notes, on average and a little more
COLUMN, TILE = 46, 36  # at most; more than 14 rows make both smaller
WIDTH_OF_COLUMNS = 640
NARROW_COLUMNS = 264  # of ten rows on a telephone
LINE = 18  # of notes that stand below their row
HEAD, GAP = 46, 22


def scatter_flow(flow: Flow, faces: Any = None, narrow: bool = False) -> Figure:
    """Draw one forward of a DataParallel.

    faces: (N, 8, 8) digits 0..16, row i being faces[i % N]; the cast of the series if left out.
    narrow: for a telephone, with the notes below their rows and not beside them.
    """
    layout = _Layout(flow, cast() if faces is None else faces, narrow)
    canvas = Canvas(layout.width, layout.height, _title(flow), _describe(flow))
    _draw_guides(canvas, layout)
    _draw_batch(canvas, layout)
    for gpu in range(flow.gpus):
        _draw_lane(canvas, layout, gpu)
    _draw_output(canvas, layout)
    return canvas.figure()


class _Layout:
    """Where things stand: row i keeps its column from top to bottom, since only trailing chunks are ever dropped."""

    def __init__(self, flow: Flow, faces: Any, narrow: bool) -> None:
        self.flow, self.faces = flow, faces
        self.column = min(COLUMN, (NARROW_COLUMNS if narrow else WIDTH_OF_COLUMNS) / flow.rows)
        self.tile = self.column * TILE / COLUMN
        self.below = LINE if narrow else 0  # room for a note below its row
        self.row = max(self.tile, 24)
        self.lane = self.row + self.below + 12
        columns = max(flow.rows * self.column, 200)  # the captions need room even above a single row
        longest = max(len(words) for words in (_verdict(flow), *(_note(flow, gpu) for gpu in range(flow.gpus))))
        self.notes = GUTTER if narrow else GUTTER + columns + 10
        self.width = max(GUTTER + columns + 16 if narrow else 0, self.notes + LETTER * longest + 24)
        self.lanes = HEAD + self.tile + GAP
        self.output = self.lanes + flow.gpus * self.lane + GAP
        self.height = self.output + self.row + self.below + 18

    def x(self, row: int) -> float:
        return GUTTER + row * self.column + (self.column - self.tile) / 2

    def y(self, gpu: int) -> float:
        return self.lanes + gpu * self.lane

    def note(self, top: float, height: float) -> tuple[float, float]:
        """Where the note to a row of digits is written: beside its middle, or below it."""
        return self.notes, top + (height + LINE - 4 if self.below else height / 2 + 4.5)

    def face(self, row: int) -> Any:
        return self.faces[row % len(self.faces)]


def _draw_guides(canvas: Canvas, layout: _Layout) -> None:
    """Thin lines in the colour of the GPU, from the batch to the lane and on to the output."""
    for gpu, rows in enumerate(layout.flow.first):
        for row in rows:
            middle = layout.x(row) + layout.tile / 2
            end = layout.output if layout.flow.called(gpu) else layout.y(gpu) + layout.lane / 2
            dashes = None if layout.flow.called(gpu) else "3 4"
            colour = blend(gpu_colour(gpu), 0.6)
            top = HEAD + layout.tile
            canvas.line(middle, top, middle, end, stroke=colour, stroke_width=2, stroke_dasharray=dashes)


def _draw_batch(canvas: Canvas, layout: _Layout) -> None:
    flow = layout.flow
    name = next(iter(flow.chunks))
    canvas.text(16, 26, _title(flow), size=16, font_weight="bold")
    canvas.text(16, HEAD + layout.tile / 2, f"{name} in", font_weight="bold")
    canvas.text(16, HEAD + layout.tile / 2 + 16, _count(flow.rows, "row"), size=12, fill=FAINT)
    for gpu, rows in enumerate(flow.first):
        for row in rows:
            draw_digit(canvas, layout.face(row), layout.x(row), HEAD, layout.tile, edge=gpu_colour(gpu))


def _draw_lane(canvas: Canvas, layout: _Layout, gpu: int) -> None:
    flow, top, height = layout.flow, layout.y(gpu), layout.lane - 6
    colour, called = gpu_colour(gpu), flow.called(gpu)
    tint = blend(colour, 0.16) if called else "none"
    edge = colour if called else LOST_COLOUR
    dashes = None if called else "4 3"
    canvas.rect(
        8, top, layout.width - 16, height, fill=tint, stroke=edge, stroke_width=1.5, stroke_dasharray=dashes, rx=6
    )
    canvas.rect(14, top + height / 2 - 10, 62, 20, fill=colour, rx=10)
    canvas.text(45, top + height / 2 + 4.5, f"cuda:{gpu}", size=12, anchor="middle", fill=ink_on(colour))
    for row in flow.first[gpu] if gpu < len(flow.first) else ():
        y = top + (height - layout.below - layout.tile) / 2
        draw_digit(canvas, layout.face(row), layout.x(row), y, layout.tile, edge=edge, lost=not called)
    x, y = layout.note(top + 3, layout.row)
    if layout.below:  # the guides of the rows above go through the lane, and would cross out its note
        canvas.rect(x - 2, y - 12, LETTER * len(_note(flow, gpu)), 15, fill=tint if called else PAPER)
    canvas.text(x, y, _note(flow, gpu), size=12, fill=INK if called else FAINT)


def _draw_output(canvas: Canvas, layout: _Layout) -> None:
    flow, top = layout.flow, layout.output
    canvas.text(16, top + layout.tile / 2, "out", font_weight="bold")
    canvas.text(16, top + layout.tile / 2 + 16, _count(flow.kept, "row"), size=12, fill=FAINT)
    for gpu, rows in enumerate(flow.first):
        for row in rows:
            if flow.called(gpu):
                draw_digit(canvas, layout.face(row), layout.x(row), top, layout.tile, edge=gpu_colour(gpu))
            else:
                slot = {"fill": "none", "stroke": RULE, "stroke_width": 2, "stroke_dasharray": "4 3", "rx": 4}
                canvas.rect(layout.x(row), top, layout.tile, layout.tile, **slot)
    canvas.text(*layout.note(top + 0.5, layout.tile), _verdict(flow), font_weight="bold")


def _title(flow: Flow) -> str:
    return f"{_count(flow.rows, 'row')} in, {flow.kept} out on {_count(flow.gpus, 'GPU')}"


def _verdict(flow: Flow) -> str:
    return "all came back" if flow.kept == flow.rows else f"{_count(flow.rows - flow.kept, 'row')} lost, silently"


def _note(flow: Flow, gpu: int) -> str:
    """What else the replica got; for one that never ran, why not."""
    others = list(flow.chunks.items())[1:]
    if flow.called(gpu):
        return ", ".join(f"+ {name} {span(chunks[gpu])}" for name, chunks in others) or "replica ran"
    missing = [name for name, chunks in others if gpu >= len(chunks)]
    if gpu >= len(flow.first):
        return "idle: no chunk left"
    return f"never called: no {' or '.join(missing)} left" if missing else "never called"


def _describe(flow: Flow) -> str:
    cuts = [
        f"{name} is cut into chunks of {_listing([len(c) for c in chunks])}" for name, chunks in flow.chunks.items()
    ]
    lanes = []
    for gpu in range(flow.gpus):
        if flow.called(gpu):
            lanes.append(f"cuda:{gpu} runs with {span(flow.received[gpu])}")
        elif gpu < len(flow.first):
            verb = "is" if len(flow.first[gpu]) == 1 else "are"
            lanes.append(f"{span(flow.first[gpu])} {verb} copied to cuda:{gpu}, whose replica is never called")
        else:
            lanes.append(f"cuda:{gpu} stays idle")
    return f"{'; '.join(cuts)}. {'; '.join(lanes)}. {_count(flow.kept, 'row')} of {flow.rows} come back."


def span(rows: Sequence[int]) -> str:
    """`rows 0-4`, `row 3`."""
    return f"row {rows[0]}" if len(rows) == 1 else f"rows {rows[0]}-{rows[-1]}"


def _listing(sizes: Sequence[int]) -> str:
    return " + ".join(map(str, sizes))


def _count(n: int, thing: str) -> str:
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"
