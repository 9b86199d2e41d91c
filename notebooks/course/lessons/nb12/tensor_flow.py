"""A flow chart drawn from a run: each stage with the tensors it took and made, their shapes, dtypes and devices."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from course.kit.figures.palette import CPU_COLOUR, blend, gpu_colour, ink_on
from course.kit.figures.svg import FAINT, INK, RULE, Canvas, Figure
from course.lessons.nb12.call_trace import SeenTensor, Stage

LEFT, CARD, HEAD, LINE, GAP, PAD = 74, 700, 34, 26, 16, 12
TAKES, LETTER, BADGE, COLUMNS = 210, 6.5, 9, 2


def tensor_flow(stages: Sequence[Stage], title: str) -> Figure:
    """Draw `stages` from top to bottom; lines at the left lead from the stage that made a tensor to those that take it.

    A tensor's number has the colour of its device. Raises ValueError when there is no stage.
    """
    if not stages:
        raise ValueError("`stages` is empty: run the model inside `with trace_calls(...) as trace`")
    heights = [HEAD + LINE * -(-len(stage.gives) // COLUMNS) + PAD / 2 for stage in stages]
    tops = [48 + sum(heights[:k]) + GAP * k for k in range(len(stages))]
    width, height = LEFT + CARD + 16, tops[-1] + heights[-1] + 44
    canvas = Canvas(width, height, title, _describe(stages), at=(16, 26))
    seen = {tensor.number: tensor for stage in stages for tensor in stage.gives}
    maker = {tensor.number: k for k, stage in enumerate(stages) for tensor in stage.gives}
    for k, stage in enumerate(stages):
        for source in sorted({maker[number] for number in stage.takes}):
            _draw_link(canvas, tops[source] + 20, tops[k] + 14, k - source)
    for stage, top, tall in zip(stages, tops, heights, strict=True):
        _draw_stage(canvas, stage, seen, top, tall)
    devices = sorted({tensor.device for tensor in seen.values()}, key=str)
    for k, device in enumerate(devices):
        _draw_badge(canvas, LEFT + 10 + 90 * k, height - 20, device, "")
        canvas.text(LEFT + 26 + 90 * k, height - 16, str(device), size=12, fill=FAINT)
    return canvas.figure()


def _draw_link(canvas: Canvas, start: float, end: float, distance: int) -> None:
    """From stage to stage along the left; the further, the wider the bow."""
    x = LEFT - 12 - min(9 * distance, 54)
    canvas.path(
        f"M{LEFT} {start:.1f}C{x} {start:.1f} {x} {end:.1f} {LEFT - 7} {end:.1f}",
        fill="none",
        stroke=blend(INK, 0.45),
        stroke_width=1.3,
    )
    canvas.path(f"M{LEFT - 1} {end:.1f}l-7 -4l0 8z", fill=blend(INK, 0.6))


def _draw_stage(canvas: Canvas, stage: Stage, seen: dict[int, SeenTensor], top: float, tall: float) -> None:
    canvas.rect(LEFT, top, CARD, tall, fill=blend(INK, 0.03), stroke=RULE, rx=6)
    canvas.text(LEFT + PAD, top + 19, stage.name, size=13, font_weight="bold")
    x = LEFT + TAKES
    if stage.takes:
        canvas.text(x, top + 19, "takes", size=12, fill=FAINT)
        for k, number in enumerate(stage.takes):
            _draw_badge(canvas, x + 48 + 23 * k, top + 15, seen[number].device, number)
    for k, tensor in enumerate(stage.gives):
        left, line = LEFT + PAD + k % COLUMNS * (CARD - PAD) / COLUMNS, top + HEAD + LINE * (k // COLUMNS) + 8
        _draw_badge(canvas, left + BADGE, line, tensor.device, tensor.number)
        canvas.text(left + 26, line + 4, tensor.name, size=12)
        after = left + 26 + LETTER * len(tensor.name) + 14
        canvas.text(after, line + 4, f"{_shape(tensor)} {tensor.dtype}", size=12, fill=FAINT)


def _draw_badge(canvas: Canvas, x: float, y: float, device: torch.device, number: int | str) -> None:
    colour = CPU_COLOUR if device.type == "cpu" else gpu_colour(device.index or 0)
    canvas.circle(x, y, BADGE, fill=colour)
    canvas.text(x, y + 4, number, size=11, anchor="middle", fill=ink_on(colour))


def _shape(tensor: SeenTensor) -> str:
    return " × ".join(map(str, tensor.shape)) or "one number"


def _describe(stages: Sequence[Stage]) -> str:
    told = []
    for stage in stages:
        made = ", ".join(f"{t.number} {t.name} {_shape(t)} {t.dtype} on {t.device}" for t in stage.gives)
        taken = f" takes {', '.join(map(str, stage.takes))} and" if stage.takes else ""
        told.append(f"{stage.name}{taken} gives {made}" if made else f"{stage.name}{taken} gives nothing")
    return "; ".join(told) + "."
