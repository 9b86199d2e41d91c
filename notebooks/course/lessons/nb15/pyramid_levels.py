"""How many cells a box is wide on the level of a feature pyramid that it is read from, beside a single map."""

import itertools
import math
from collections.abc import Callable

from course.kit.figures.palette import KIND_COLOURS, blend
from course.kit.figures.svg import FAINT, INK, RULE, Canvas, Figure

WIDTH, LEFT, RIGHT, TOP, HIGH = 480, 46, 20, 92, 200
SIDES = (32, 64, 112, 224, 448, 896)
TICKS = (1, 2, 4, 7, 14, 28, 56)
SINGLE = 16


def pyramid_levels(level: Callable[[float], int]) -> Figure:
    """A line for the pyramid and one for a single map of stride 16, over the side of a square box.

    level(side) is the level that a box of that many pixels is read from; the stride of level k is 2 ** k.
    """
    strides = [2 ** level(side) for side in SIDES]
    said = ", ".join(
        f"{side} px: {side / stride:g} cells of level {level(side)}"
        for side, stride in zip(SIDES, strides, strict=True)
    )
    canvas = Canvas(WIDTH, TOP + HIGH + 50, "How many cells wide a box is where it is read", f"{said}.", at=(16, 26))
    for name, colour, dashes, x in (
        ("on its level of the pyramid", KIND_COLOURS[0], None, 16),
        (f"on one map of stride {SINGLE}", KIND_COLOURS[2], "6 3", 246),
    ):
        canvas.line(x, 48, x + 26, 48, stroke=colour, stroke_width=2.4, stroke_dasharray=dashes)
        canvas.text(x + 32, 53, name)
    right = WIDTH - RIGHT
    canvas.rect(LEFT, _y(28), right - LEFT, _y(14) - _y(28), fill=blend(KIND_COLOURS[0], 0.15))
    for tick in TICKS:
        canvas.line(LEFT, _y(tick), right, _y(tick), stroke=RULE, stroke_width=0.7)
        canvas.text(LEFT - 8, _y(tick) + 4, tick, size=12, anchor="end", fill=FAINT)
    for side in SIDES:
        canvas.text(_x(side), TOP + HIGH + 18, side, size=12, anchor="middle", fill=FAINT)
    canvas.text(16, TOP - 14, "cells", size=12, fill=FAINT)
    canvas.text(right, TOP + HIGH + 38, "side of the box in pixels", size=12, anchor="end", fill=FAINT)
    ends = (
        [SIDES[0]] + [side for side in range(SIDES[0] + 1, SIDES[-1]) if level(side) != level(side - 1)] + [SIDES[-1]]
    )
    points = []
    for start, end in itertools.pairwise(ends):
        stride = 2 ** level(start)
        points += [(_x(start), _y(start / stride)), (_x(end), _y(end / stride))]
        middle = math.sqrt(start * end)
        canvas.text(_x(middle), TOP + HIGH - 10, f"level {level(start)}", size=12, anchor="middle", fill=INK)
    canvas.polyline(points, stroke=KIND_COLOURS[0], stroke_width=2.4, fill="none")
    single = [(_x(side), _y(side / SINGLE)) for side in (SIDES[0], SIDES[-1])]
    canvas.polyline(single, stroke=KIND_COLOURS[2], stroke_width=2.4, stroke_dasharray="6 3", fill="none")
    return canvas.figure()


def _x(side: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * math.log(side / SIDES[0]) / math.log(SIDES[-1] / SIDES[0])


def _y(cells: float) -> float:
    return TOP + HIGH * (1 - math.log(cells / TICKS[0]) / math.log(64 / TICKS[0]))
