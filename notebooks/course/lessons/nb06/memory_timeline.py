"""What every GPU holds through a training step, by kind: a lane for each GPU, a stacked bar for each stage."""

import math
from collections.abc import Sequence

from course.kit.figures.palette import KIND_COLOURS, blend
from course.kit.figures.svg import FAINT, INK, PAPER, RULE, Canvas, Figure
from course.kit.memory_kinds import KINDS
from course.kit.step_trace import MemorySample, Trace

LEFT, COLUMN, BAR, RIGHT = 112, 66, 46, 96
HEAD, LANE, TALLEST, FOOT = 116, 156, 132, 34
LETTER = 6.9
PALE = blend(FAINT, 0.18)


def memory_timeline(trace: Trace, title: str, limit: int | None = None) -> Figure:
    """Stacked by kind: held at the end of a stage. Pale, on top: the most that was held within it.

    One scale for all GPUs. GPUs next to each other that hold the same bytes share a lane; a stage in which a GPU had no
    part is left empty. `limit`, in bytes, is drawn as a line.

    Raises ValueError for a trace without samples.
    """
    stages = trace.stages
    if not stages:
        raise ValueError(
            "`trace` has no samples: take a step inside `with trace_step(net, gpus) as step`, or call its mark()"
        )
    most, lanes = max(*trace.peaks, limit or 0, 1), _lanes(trace)
    height = HEAD + len(lanes) * LANE + FOOT
    legend = [kind for kind in KINDS if any(sample.kinds[kind] for sample in trace.samples)]
    named = 32 + sum(34 + LETTER * len(kind) for kind in legend)
    width = max(LEFT + len(stages) * COLUMN + RIGHT, 60 + len(title) * 8.4, named)
    canvas = Canvas(width, height, title, _describe(trace, limit), at=(16, 28))
    _draw_legend(canvas, legend)
    for k, stage in enumerate(stages):
        for line, word in enumerate(stage.split(" ", 1)):
            x = LEFT + k * COLUMN + COLUMN / 2
            canvas.text(x, HEAD - 26 + 15 * line, word, size=12, anchor="middle", fill=INK if line else FAINT)
    for row, (name, samples, peak) in enumerate(lanes):
        _draw_lane(canvas, name, [samples.get(stage) for stage in stages], peak, HEAD + row * LANE, most, limit)
    words = "colours: held at the end of a stage; pale: the most within it"
    canvas.text(16, height - 12, words + (f"; dashed: the limit, {megabytes(limit)}" if limit else ""), 12, fill=FAINT)
    return canvas.figure()


def _lanes(trace: Trace) -> list[tuple[str, dict[str, MemorySample], int]]:
    """Name, samples by stage and peak of each lane."""
    groups: list[list[int]] = []
    told: list[tuple[list[tuple[str, int, int, dict[str, int]]], int]] = []
    for k, device in enumerate(trace.gpus):
        samples = trace.samples_of(device).values()
        now = ([(one.stage, one.held, one.peak, one.kinds) for one in samples], trace.peaks[k])
        if told and told[-1] == now:
            groups[-1].append(k)
        else:
            groups.append([k])
            told.append(now)
    names = [
        f"cuda:{trace.gpus[group[0]].index}" + (f" to {trace.gpus[group[-1]].index}" if len(group) > 1 else "")
        for group in groups
    ]
    firsts = [group[0] for group in groups]
    return [(name, trace.samples_of(trace.gpus[k]), trace.peaks[k]) for name, k in zip(names, firsts, strict=True)]


def _draw_legend(canvas: Canvas, kinds: Sequence[str]) -> None:
    x = 16.0
    for kind, colour in zip(KINDS, KIND_COLOURS, strict=True):
        if kind in kinds:
            canvas.rect(x, 46, 12, 12, fill=colour, stroke=INK, stroke_width=0.6)
            canvas.text(x + 18, 57, kind, size=12)
            x += 34 + LETTER * len(kind)


def _draw_lane(
    canvas: Canvas,
    name: str,
    samples: Sequence[MemorySample | None],
    peak: int,
    top: float,
    most: int,
    limit: int | None,
) -> None:
    floor, right = top + LANE - 14, LEFT + len(samples) * COLUMN
    canvas.text(16, floor - TALLEST / 2 + 5, name, size=13, font_weight="bold")
    canvas.line(LEFT, floor, right, floor, stroke=RULE)
    for k, sample in enumerate(samples):
        if sample is not None:
            x, y = LEFT + k * COLUMN + (COLUMN - BAR) / 2, floor
            taller = TALLEST * sample.peak / most
            canvas.rect(x, floor - taller, BAR, taller, fill=PALE)
            for kind, colour in zip(KINDS, KIND_COLOURS, strict=True):
                tall = TALLEST * sample.kinds[kind] / most
                if tall > 0:
                    y -= tall
                    canvas.rect(x, y, BAR, tall, fill=colour, stroke=PAPER, stroke_width=0.6)
    if limit is not None:
        y = floor - TALLEST * limit / most
        canvas.line(LEFT, y, right, y, stroke=INK, stroke_width=1.5, stroke_dasharray="6 4")
    canvas.text(right + 8, floor - TALLEST / 2 - 3, "peak", size=12, fill=FAINT)
    canvas.text(right + 8, floor - TALLEST / 2 + 13, megabytes(peak), size=13, font_weight="bold")


def megabytes(count: int) -> str:
    """Bytes as megabytes of 1,000,000, rounded up to a tenth, so that what does not fit never reads as if it did."""
    return f"{math.ceil(count / 1e5) / 10:.1f} MB"


def _describe(trace: Trace, limit: int | None) -> str:
    told = []
    for name, samples, peak in _lanes(trace):
        held = ", ".join(f"{stage} {megabytes(sample.held)}{_parts(sample)}" for stage, sample in samples.items())
        told.append(f"{name}: peak {megabytes(peak)}; held after {held}")
    return ". ".join(told) + ("." if limit is None else f". The limit is {megabytes(limit)}.")


def _parts(sample: MemorySample) -> str:
    parts = ", ".join(f"{kind} {megabytes(size)}" for kind, size in sample.kinds.items() if size)
    return f" ({parts})" if parts else ""
