"""Loss curves as SVG."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from course.kit.figures.palette import KIND_COLOURS
from course.kit.figures.svg import FAINT, INK, RULE, Canvas, Figure, number

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 58, 150, 44, 44
DASHES = (None, "7 4", "2 3", "9 3 2 3")  # a second sign beside the colour


def curves(
    series: Mapping[str, Sequence[float]],
    title: str,
    x_label: str = "step",
    y_label: str = "loss",
    every: float = 1,
    colours: Sequence[str] = KIND_COLOURS,
    first: float = 0,
    steps: bool = False,
) -> Figure:
    """Lines over equally spaced points, each named at its end.

    series: name -> finite values; `every` is the distance of two values on the x axis, `first` the place of the first;
    colours: of the lines; steps: each value holds for a step, as a rate does, and the next one begins with a jump.
    Raises ValueError for no series, an empty one, or a value that is not finite.
    """
    lengths = {name: len(values) for name, values in series.items()}
    if not lengths or not all(lengths.values()):
        raise ValueError(f"`series` needs at least one line with values, got lengths {lengths}")
    if len(series) > len(colours):
        raise ValueError(f"`series` has {len(series)} lines; {len(colours)} is what can be told apart")
    for name, values in series.items():
        if not all(map(math.isfinite, values)):
            raise ValueError(f"`series` {name!r} holds a value that is not finite")
    axes = _Axes(series, every, first, steps)
    canvas = Canvas(WIDTH, HEIGHT, title, _describe(series, x_label, y_label, every, steps), at=(16, 26))
    axes.draw(canvas, x_label, y_label)
    labels = _spread([axes.y(values[-1]) for values in series.values()])
    for k, (name, values) in enumerate(series.items()):
        ends = (-0.5, 0.5) if steps else (0,)
        points = [(axes.x(i + end), axes.y(value)) for i, value in enumerate(values) for end in ends]
        dashes, x = DASHES[k % len(DASHES)], WIDTH - RIGHT
        style = {"stroke": colours[k], "stroke_dasharray": dashes, "stroke_width": 2, "stroke_linejoin": "round"}
        canvas.polyline(points, **style)
        canvas.line(x + 6, labels[k], x + 26, labels[k], **style)
        canvas.text(x + 32, labels[k] + 4.5, name, size=12)
    return canvas.figure()


class _Axes:
    """Scales from data to pixels; the y axis starts at zero, as losses do, unless a value is below it."""

    def __init__(self, series: Mapping[str, Sequence[float]], every: float, first: float, steps: bool) -> None:
        every_value = [value for values in series.values() for value in values]
        self.last = max(len(values) for values in series.values()) - 1
        self.every, self.first = every, first
        self.edge = 0.5 if steps else 0.0  # what the first and the last step need at the sides
        self.y_ticks = _ticks(min(0.0, *every_value), max(every_value), 4)
        self.low, self.high = self.y_ticks[0], self.y_ticks[-1]

    def x(self, i: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (i + self.edge) / max(self.last + 2 * self.edge, 1)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - self.low) / (self.high - self.low)

    def draw(self, canvas: Canvas, x_label: str, y_label: str) -> None:
        right, floor = WIDTH - RIGHT, HEIGHT - BOTTOM
        caption: dict[str, Any] = {"size": 12, "anchor": "middle", "fill": FAINT}
        for value in self.y_ticks:
            canvas.line(LEFT, self.y(value), right, self.y(value), stroke=RULE)
            canvas.text(LEFT - 8, self.y(value) + 4, number(value), size=12, anchor="end", fill=FAINT)
        end = self.first + self.last * self.every
        for value in _ticks(self.first, max(end, self.first + 1), 5):
            if self.first <= value <= end:
                canvas.text(self.x((value - self.first) / self.every), floor + 18, number(value), **caption)
        canvas.line(LEFT, floor, right, floor, stroke=INK)
        canvas.text((LEFT + right) / 2, HEIGHT - 8, x_label, **caption)
        middle = (TOP + floor) / 2
        canvas.text(16, middle, y_label, transform=f"rotate(-90 16 {number(middle)})", **caption)


def _ticks(low: float, high: float, wanted: int) -> list[float]:
    """Round numbers (1, 2 or 5 times a power of ten apart) that enclose low..high."""
    rough = max(high - low, 1e-9) / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [k * step for k in range(first, max(last, first + 1) + 1)]


def _spread(heights: Sequence[float], apart: float = 16) -> list[float]:
    """The same heights moved down where names would lie on each other, and back up if the last would leave the plot."""
    placed = list(heights)
    order = sorted(range(len(placed)), key=placed.__getitem__)
    for above, below in pairwise(order):
        placed[below] = max(placed[below], placed[above] + apart)
    overshoot = max(0.0, placed[order[-1]] - (HEIGHT - BOTTOM))
    return [height - overshoot for height in placed]


def _describe(series: Mapping[str, Sequence[float]], x_label: str, y_label: str, every: float, steps: bool) -> str:
    lines = [
        f"{name} goes from {values[0]:.2f} to {values[-1]:.2f}, lowest {min(values):.2f}"
        for name, values in series.items()
    ]
    length = (max(len(values) for values in series.values()) - (not steps)) * every
    return f"{y_label} over {length:g} {x_label}s: {'; '.join(lines)}."
