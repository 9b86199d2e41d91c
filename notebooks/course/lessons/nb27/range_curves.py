"""A range test of several parts: the loss of each at several learning rates, a panel for each part."""

import math
from collections.abc import Mapping

from course.kit.figures.palette import KIND_COLOURS
from course.kit.figures.svg import FAINT, INK, RULE, Canvas, Figure, number

PANEL, HEIGHT, LEFT, TOP, BOTTOM = 320, 270, 52, 74, 52


def range_curves(parts: Mapping[str, Mapping[float, float]], title: str) -> Figure:
    """Draw part -> rate -> loss. The rate 0 is the part at rest, a dashed line; the others are on a logarithmic axis.

    Raises ValueError where a part has no rate 0 or fewer than two others, or a loss that is not finite.
    """
    for part, losses in parts.items():
        if 0 not in losses or len(losses) < 3 or not all(map(math.isfinite, losses.values())):
            raise ValueError(f"`parts` {part!r} needs finite losses at rate 0 and at two other rates, got {losses}")
    canvas = Canvas(PANEL * len(parts), HEIGHT, title, _describe(parts), at=(16, 28))
    for k, (part, losses) in enumerate(parts.items()):
        _draw_panel(canvas, PANEL * k, part, losses, KIND_COLOURS[2 * k])
    return canvas.figure()


def _draw_panel(canvas: Canvas, left: float, part: str, losses: Mapping[float, float], colour: str) -> None:
    rates = sorted(rate for rate in losses if rate)
    low, high = math.log(rates[0]), math.log(rates[-1])
    top = max(losses.values()) * 1.05
    floor, x0, x1 = HEIGHT - BOTTOM, left + LEFT, left + PANEL - 20

    def x(rate: float) -> float:
        return x0 + (x1 - x0) * (math.log(rate) - low) / (high - low)

    def y(loss: float) -> float:
        return floor - (floor - TOP) * loss / top

    canvas.text(x0, TOP - 18, part, size=13)
    canvas.line(x0, floor, x1, floor, stroke=INK)
    for loss in (0.0, top / 2, top):
        canvas.line(x0, y(loss), x1, y(loss), stroke=RULE)
        canvas.text(x0 - 6, y(loss) + 4, number(loss), size=11, anchor="end", fill=FAINT)
    for rate in rates:
        canvas.text(x(rate), floor + 17, f"{rate:g}", size=11, anchor="middle", fill=FAINT)
    canvas.text((x0 + x1) / 2, HEIGHT - 14, "learning rate", size=12, anchor="middle", fill=FAINT)
    canvas.line(x0, y(losses[0]), x1, y(losses[0]), stroke=FAINT, stroke_dasharray="4 4")
    canvas.text(x1, y(losses[0]) - 5, "at rest", size=11, anchor="end", fill=FAINT)
    canvas.polyline([(x(rate), y(losses[rate])) for rate in rates], stroke=colour, stroke_width=2)
    for rate in rates:
        canvas.circle(x(rate), y(losses[rate]), 4, fill=colour)


def _describe(parts: Mapping[str, Mapping[float, float]]) -> str:
    told = []
    for part, losses in parts.items():
        at = ", ".join(f"{losses[rate]:.2f} at {rate:g}" for rate in sorted(losses) if rate)
        told.append(f"{part}: loss {losses[0]:.2f} at rest, {at}")
    return "; ".join(told) + "."
