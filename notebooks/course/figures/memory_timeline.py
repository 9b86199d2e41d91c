"""What every GPU holds through a training step: a row for each GPU, a bar for each stage."""

import math
from collections.abc import Sequence

from course.figures.palette import VERMILLION, blend, gpu_colour
from course.figures.svg import FAINT, INK, RULE, Canvas, Figure
from course.step_trace import MemorySample, Trace

LEFT, COLUMN, BAR, RIGHT = 84, 66, 46, 92
HEAD, LANE, TALLEST, FOOT = 84, 96, 76, 34


def memory_timeline(trace: Trace, title: str, limit: int | None = None) -> Figure:
    """Solid: held at the end of a stage. Tint: the most that was held within it. One scale for all GPUs.

    A stage in which a GPU had no part is left empty. `limit`, in bytes, is drawn as a line.

    Raises ValueError for a trace without samples.
    """
    stages = trace.stages
    if not stages:
        raise ValueError(
            "trace has no samples: take a step inside `with trace_step(net, gpus) as step`, or call its mark()"
        )
    most = max(*trace.peaks, limit or 0, 1)
    width, height = LEFT + len(stages) * COLUMN + RIGHT, HEAD + len(trace.gpus) * LANE + FOOT
    canvas = Canvas(max(width, 60 + len(title) * 8.4), height, title, _describe(trace, limit), at=(16, 28))
    for k, stage in enumerate(stages):
        for line, word in enumerate(stage.split(" ", 1)):
            x = LEFT + k * COLUMN + COLUMN / 2
            canvas.text(x, HEAD - 26 + 15 * line, word, size=12, anchor="middle", fill=INK if line else FAINT)
    for row, device in enumerate(trace.gpus):
        samples = [trace.samples_of(device).get(stage) for stage in stages]
        _draw_lane(canvas, device.index, samples, trace.peaks[row], HEAD + row * LANE, most, limit)
    words = "solid: held at the end of a stage; tint: the most within it"
    canvas.text(16, height - 12, words + (f"; dashed: {megabytes(limit)}" if limit else ""), size=12, fill=FAINT)
    return canvas.figure()


def _draw_lane(
    canvas: Canvas,
    gpu: int,
    samples: Sequence[MemorySample | None],
    peak: int,
    top: float,
    most: int,
    limit: int | None,
) -> None:
    floor, right = top + LANE - 8, LEFT + len(samples) * COLUMN
    canvas.text(16, floor - TALLEST / 2 + 5, f"cuda:{gpu}", size=13, font_weight="bold")
    canvas.line(LEFT, floor, right, floor, stroke=RULE)
    for k, sample in enumerate(samples):
        if sample is not None:
            x, held, within = LEFT + k * COLUMN + (COLUMN - BAR) / 2, sample.held, sample.peak
            tall, taller = (TALLEST * size / most for size in (held, within))
            canvas.rect(x, floor - taller, BAR, taller, fill=blend(gpu_colour(gpu), 0.3), rx=2)
            canvas.rect(x, floor - tall, BAR, tall, fill=gpu_colour(gpu), rx=2)
    if limit is not None:
        y = floor - TALLEST * limit / most
        canvas.line(LEFT, y, right, y, stroke=VERMILLION, stroke_width=1.5, stroke_dasharray="6 4")
    canvas.text(right + 8, floor - TALLEST / 2 - 3, "peak", size=12, fill=FAINT)
    canvas.text(right + 8, floor - TALLEST / 2 + 13, megabytes(peak), size=13, font_weight="bold")


def megabytes(count: int) -> str:
    """Bytes as megabytes of 1,000,000, rounded up to a tenth, so that what does not fit never reads as if it did."""
    return f"{math.ceil(count / 1e5) / 10:.1f} MB"


def _describe(trace: Trace, limit: int | None) -> str:
    told = []
    for device, peak in zip(trace.gpus, trace.peaks, strict=True):
        held = ", ".join(f"{stage} {megabytes(sample.held)}" for stage, sample in trace.samples_of(device).items())
        told.append(f"{device}: peak {megabytes(peak)}; held after {held}")
    return ". ".join(told) + ("." if limit is None else f". The limit is {megabytes(limit)}.")
