"""One step of `nn.DataParallel` drawn as a placement: which rows, weights and gradients were where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from course.kit.figures.digits import cast, draw_digit
from course.kit.figures.palette import CPU_COLOUR, blend, gpu_colour, ink_on
from course.kit.figures.scatter_flow import span
from course.kit.figures.svg import FAINT, INK, Canvas, Figure
from course.kit.step_trace import Trace

LEFT, TILE, COLUMN = 92, 26, 32
CHIP_LETTER, CHIP_PAD, CHIP_HEIGHT = 6.2, 12, 20
HEAD, LANE, GAP, NOTES = 48, 72, 22, 178


@dataclass(frozen=True)
class Placement:
    """State of the figure, GPUs and rows as plain numbers.

    rows: for cuda:0, cuda:1, ... the rows of the batch that its replica ran with;
    held: for each of them, bytes of parameters and buffers it held, by name;
    copied: for each of them, bytes of these that were copied there for the step;
    gradients: for each of them, names of the parameters whose gradient it computed;
    sums: name -> index of the GPU on which the gradients were added up;
    output: index of the GPU that has the gathered output, None for the CPU.
    """

    rows: Sequence[Sequence[int]]
    held: Sequence[Mapping[str, int]]
    copied: Sequence[int]
    gradients: Sequence[Sequence[str]]
    sums: Mapping[str, int]
    output: int | None

    @classmethod
    def from_trace(cls, trace: Trace, *, output: Tensor, **argument: Tensor) -> Placement:
        """What a traced step did; `argument` is the batch that went in, by the name that forward gives it.

        Raises ValueError for more or fewer than one argument, and when no replica was called.
        """
        if len(argument) != 1:
            raise ValueError(f"`argument`: want one batch by name, such as x=x, got {list(argument)}")
        if not trace.calls:
            raise ValueError("the trace holds no call: run the step inside `with trace_step(dp) as step`")
        ((name, batch),) = argument.items()
        devices = [call.device for call in trace.calls]
        names = list(dict.fromkeys(tensor.name for tensor in trace.held))
        computed = {device: {n for n, d in trace.gradients if d == device} for device in devices}
        return cls(
            rows=trace.find_rows(name, batch),
            held=[{t.name: t.nbytes for t in trace.held if t.device == device} for device in devices],
            copied=[trace.bytes_copied_to(device) for device in devices],
            gradients=[[n for n in names if n in computed[device]] for device in devices],
            sums={n: trace.sums[n].index or 0 for n in names if n in trace.sums},
            output=None if output.device == torch.device("cpu") else output.device.index or 0,
        )


def placement(step: Placement) -> Figure:
    """Draw the step from top to bottom: what cuda:0 starts with, what each replica works with, where results meet."""
    layout = _Layout(step)
    canvas = Canvas(layout.width, layout.height, _title(step), _describe(step), at=(16, 26))
    _draw_threads(canvas, layout)
    _draw_start(canvas, layout)
    for gpu in range(len(step.rows)):
        _draw_lane(canvas, layout, gpu)
    _draw_end(canvas, layout)
    return canvas.figure()


class _Layout:
    """Row i keeps its column, weight j and its gradients keep theirs, so that everything moves straight down."""

    def __init__(self, step: Placement) -> None:
        self.step = step
        self.chips = LEFT + sum(map(len, step.rows)) * COLUMN + 18
        self.chip_x, self.chip_width = dict[str, float](), dict[str, float]()
        x: float = self.chips
        for name in step.held[0]:
            self.chip_x[name], self.chip_width[name] = x, len(name) * CHIP_LETTER + CHIP_PAD
            x += self.chip_width[name] + 5
        self.notes = x + 8
        self.width = self.notes + NOTES
        self.lanes = HEAD + TILE + GAP
        self.end = self.lanes + len(step.rows) * LANE + GAP - 10
        self.height = self.end + TILE + 34

    def row_x(self, row: int) -> float:
        return LEFT + row * COLUMN

    def lane_y(self, gpu: int) -> float:
        return self.lanes + gpu * LANE


def _draw_threads(canvas: Canvas, layout: _Layout) -> None:
    """Straight lines down: rows in the colour of the GPU that runs them, weights and gradients in grey."""
    step = layout.step
    for gpu, rows in enumerate(step.rows):
        for row in rows:
            x = layout.row_x(row) + TILE / 2
            canvas.line(x, HEAD + TILE, x, layout.end + 4, stroke=blend(gpu_colour(gpu), 0.6), stroke_width=2)
    for name, x in layout.chip_x.items():
        bottom = layout.end + 4 if name in step.sums else layout.lane_y(len(step.rows) - 1)
        middle = x + layout.chip_width[name] / 2
        canvas.line(middle, HEAD + CHIP_HEIGHT, middle, bottom, stroke=FAINT)


def _draw_start(canvas: Canvas, layout: _Layout) -> None:
    step = layout.step
    canvas.text(16, HEAD + 18, "start", font_weight="bold")
    for gpu, rows in enumerate(step.rows):
        for row in rows:
            draw_digit(canvas, cast()[row % 10], layout.row_x(row), HEAD, TILE, edge=gpu_colour(gpu))
    for name in step.held[0]:
        _chip(canvas, layout, name, HEAD + 3, gpu_colour(0))
    canvas.text(layout.notes, HEAD + 17, f"module: {sum(step.held[0].values()):,} bytes", size=12)


def _draw_lane(canvas: Canvas, layout: _Layout, gpu: int) -> None:
    step, top, colour = layout.step, layout.lane_y(gpu), gpu_colour(gpu)
    canvas.rect(8, top, layout.width - 16, LANE - 8, fill=blend(colour, 0.16), stroke=colour, stroke_width=1.5, rx=6)
    canvas.rect(14, top + 22, 62, 20, fill=colour, rx=10)
    canvas.text(45, top + 36.5, f"cuda:{gpu}", size=12, anchor="middle", fill=ink_on(colour))
    for row in step.rows[gpu]:
        draw_digit(canvas, cast()[row % 10], layout.row_x(row), top + 19, TILE, edge=colour)
    for name in step.held[gpu]:
        _chip(canvas, layout, name, top + 8, colour)
    for name in step.gradients[gpu]:
        _chip(canvas, layout, name, top + 36, blend(colour, 0.35), gradient=True)
    copied = f"copied: {step.copied[gpu]:,} bytes" if step.copied[gpu] else "the module's own memory"
    canvas.text(layout.notes, top + 22, copied, size=12)
    if step.gradients[gpu]:
        canvas.text(layout.notes, top + 50, f"gradients of {span(step.rows[gpu])}", size=12)


def _draw_end(canvas: Canvas, layout: _Layout) -> None:
    step = layout.step
    canvas.text(16, layout.end + 18, "end", font_weight="bold")
    colour = CPU_COLOUR if step.output is None else gpu_colour(step.output)
    for rows in step.rows:
        for row in rows:
            draw_digit(canvas, cast()[row % 10], layout.row_x(row), layout.end, TILE, edge=colour)
    canvas.text(LEFT, layout.end + TILE + 18, f"outputs, gathered on {_place(step.output)}", size=12)
    for name, gpu in step.sums.items():
        _chip(canvas, layout, name, layout.end + 3, gpu_colour(gpu), gradient=True)
    if step.sums:
        canvas.text(layout.chips, layout.end + TILE + 18, _sum_note(step), size=12)


def _chip(canvas: Canvas, layout: _Layout, name: str, y: float, colour: str, gradient: bool = False) -> None:
    """A tensor of the module; its gradient has round ends, so that the two differ without colour."""
    x, width = layout.chip_x[name], layout.chip_width[name]
    rounding = CHIP_HEIGHT / 2 if gradient else 3
    canvas.rect(x, y, width, CHIP_HEIGHT, fill=colour, stroke=INK, stroke_width=0.8, rx=rounding)
    canvas.text(x + width / 2, y + 14, name, size=11, anchor="middle", fill=ink_on(colour))


def _place(gpu: int | None) -> str:
    return "the CPU" if gpu is None else f"cuda:{gpu}"


def _sum_note(step: Placement) -> str:
    places = " and ".join(f"cuda:{gpu}" for gpu in sorted(set(step.sums.values())))
    return f".grad: the sum of {len(step.rows)} gradients each, on {places}"


def _title(step: Placement) -> str:
    return f"One step on {len(step.rows)} GPUs: rows are split, weights are copied, gradients are added"


def _describe(step: Placement) -> str:
    lanes = [
        f"cuda:{gpu} runs {span(rows)} with all {len(step.held[gpu])} tensors of the module, "
        f"{sum(step.held[gpu].values()):,} bytes, {step.copied[gpu]:,} of them copied there, "
        f"and computes {len(step.gradients[gpu])} gradients"
        for gpu, rows in enumerate(step.rows)
    ]
    end = f"The output is gathered on {_place(step.output)}"
    return f"{'; '.join(lanes)}. {end}" + (f"; {_sum_note(step)}." if step.sums else ".")
