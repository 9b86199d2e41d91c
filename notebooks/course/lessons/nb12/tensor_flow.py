"""A flow chart drawn from a run: the stages, the tensors that each of them makes, and on which device it made them."""

from collections.abc import Sequence

import torch

from course.kit.figures.palette import CPU_COLOUR, blend, gpu_colour
from course.kit.figures.svg import FAINT, INK, RULE, Canvas, Figure
from course.lessons.nb12.call_trace import SeenTensor, Stage

LEFT, CARD, TALL, GAP, TOP = 62, 372, 46, 16, 46


def tensor_flow(stages: Sequence[Stage], title: str) -> Figure:
    """Draw `stages` from top to bottom; lines at the left lead from the stage that made a tensor to those that take it.

    The dot of a stage has the colour of the device of what it made. Raises ValueError when there is no stage.
    """
    if not stages:
        raise ValueError("`stages` is empty: run the model inside `with trace_calls(...) as trace`")
    tops = [TOP + (TALL + GAP) * k for k in range(len(stages))]
    canvas = Canvas(LEFT + CARD + 14, tops[-1] + TALL + 42, title, _describe(stages), at=(14, 26))
    maker = {tensor.number: k for k, stage in enumerate(stages) for tensor in stage.gives}
    for k, stage in enumerate(stages):
        for source in sorted({maker[number] for number in stage.takes}):
            _draw_link(canvas, tops[source] + 34, tops[k] + 16, k - source)
    for stage, top in zip(stages, tops, strict=True):
        canvas.rect(LEFT, top, CARD, TALL, fill=blend(INK, 0.03), stroke=RULE, rx=6)
        for k, device in enumerate(_devices([stage])):
            canvas.circle(LEFT + CARD - 14 - 16 * k, top + 15, 6, fill=_colour(device))
        canvas.text(LEFT + 12, top + 19, stage.name, size=13, font_weight="bold")
        canvas.text(LEFT + 12, top + 37, " · ".join(map(_words, stage.gives)), size=12, fill=FAINT)
    for k, device in enumerate(_devices(stages)):
        canvas.circle(LEFT + 18 + 90 * k, tops[-1] + TALL + 22, 6, fill=_colour(device))
        canvas.text(LEFT + 30 + 90 * k, tops[-1] + TALL + 26, str(device), size=12, fill=FAINT)
    return canvas.figure()


def _draw_link(canvas: Canvas, start: float, end: float, distance: int) -> None:
    """From stage to stage along the left; the further, the wider the bow."""
    x = LEFT - 10 - min(14 * distance, 62)
    canvas.path(
        f"M{LEFT} {start:.1f}C{x} {start:.1f} {x} {end:.1f} {LEFT - 7} {end:.1f}",
        fill="none",
        stroke=blend(INK, 0.45),
        stroke_width=1.4,
    )
    canvas.path(f"M{LEFT - 1} {end:.1f}l-7 -4l0 8z", fill=blend(INK, 0.6))


def _devices(stages: Sequence[Stage]) -> list[torch.device]:
    return sorted({tensor.device for stage in stages for tensor in stage.gives}, key=str)


def _colour(device: torch.device) -> str:
    return CPU_COLOUR if device.type == "cpu" else gpu_colour(device.index or 0)


def _words(tensor: SeenTensor) -> str:
    return f"{tensor.name} {'×'.join(map(str, tensor.shape)) or 'one number'}"


def _describe(stages: Sequence[Stage]) -> str:
    seen = {tensor.number: tensor.name for stage in stages for tensor in stage.gives}
    told = []
    for stage in stages:
        taken = f" takes {', '.join(seen[number] for number in stage.takes)} and" if stage.takes else ""
        made = ", ".join(f"{_words(tensor)} {tensor.dtype} on {tensor.device}" for tensor in stage.gives)
        told.append(f"{stage.name}{taken} gives {made or 'nothing'}")
    return "; ".join(told) + "."
