"""Horizontal bars with their numbers written out."""

from collections.abc import Mapping, Sequence

from course.kit.figures.palette import KIND_COLOURS
from course.kit.figures.svg import RULE, Canvas, Figure

BAR, GAP, TOP, LENGTH, RIGHT = 22, 10, 48, 360, 120


def bars(
    values: Mapping[str, float],
    title: str,
    unit: str = "",
    marked: str | None = None,
    colours: Sequence[str] = KIND_COLOURS[1:3],
) -> Figure:
    """One bar a name, its length in proportion to its value (0 or more); `marked` gets the second of the colours."""
    if not values or min(values.values()) < 0:
        raise ValueError(f"`values` must hold numbers of 0 or more, got {dict(values)}")
    if marked is not None and marked not in values:
        raise ValueError(f"`marked` is {marked!r}, which is none of {list(values)}")
    most = max(values.values()) or 1
    left = 24 + 7.4 * max(map(len, values))
    height = TOP + len(values) * (BAR + GAP) + 8
    canvas = Canvas(left + LENGTH + RIGHT, height, title, _describe(values, unit), at=(16, 28))
    canvas.line(left, TOP - 4, left, height - 10, stroke=RULE)
    for k, (name, value) in enumerate(values.items()):
        y = TOP + k * (BAR + GAP)
        length = LENGTH * value / most
        canvas.text(left - 8, y + 15.5, name, anchor="end")
        canvas.rect(left, y, max(length, 1), BAR, fill=colours[name == marked], rx=3)
        canvas.text(left + length + 8, y + 15.5, _written(value, unit))
    return canvas.figure()


def _written(value: float, unit: str) -> str:
    digits = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"
    return f"{digits} {unit}".rstrip()


def _describe(values: Mapping[str, float], unit: str) -> str:
    return "; ".join(f"{name}: {_written(value, unit)}" for name, value in values.items()) + "."
