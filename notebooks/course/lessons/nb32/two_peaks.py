"""A heat map, and where two programs find its peak in the picture that is made of it."""

from collections.abc import Sequence

from course.kit.figures.palette import KIND_COLOURS, RIGHT_COLOUR, WRONG_COLOUR, blend
from course.kit.figures.svg import INK, RULE, Canvas, Figure

CELL, LEFT, TOP = 38, 18, 48

Place = tuple[int, int]  # row and column of a pixel


def two_peaks(heat: Sequence[Sequence[float]], factor: int, right: Place, found: Place, title: str) -> Figure:
    """`heat`: rows of numbers from 0 to 1, each as large as `factor` x `factor` pixels; an arrow leads to `found`."""
    rows, columns = len(heat), len(heat[0])
    width = max(2 * LEFT + columns * CELL, 2 * LEFT + 9.5 * len(title))
    canvas = Canvas(width, TOP + rows * CELL + 62, title, _describe(right, found), at=(LEFT, 28))
    for i, row in enumerate(heat):
        for j, value in enumerate(row):
            colour = blend(KIND_COLOURS[0], 0.5 * value)
            canvas.rect(LEFT + j * CELL, TOP + i * CELL, CELL, CELL, fill=colour, stroke=RULE)
    places = [(LEFT + (p[1] + 0.5) / factor * CELL, TOP + (p[0] + 0.5) / factor * CELL) for p in (right, found)]
    if right != found:
        canvas.line(*places[0], *places[1], stroke=INK, stroke_width=2)
    y = TOP + rows * CELL + 24
    for (x_, y_), place, colour, name in zip(
        places, (right, found), (RIGHT_COLOUR, WRONG_COLOUR), ("PyTorch", "the file"), strict=True
    ):
        colour = RIGHT_COLOUR if place == right else colour
        canvas.circle(x_, y_, 6, fill=colour, stroke=INK)
        canvas.circle(LEFT + 8, y - 4, 6, fill=colour, stroke=INK)
        canvas.text(LEFT + 22, y, f"{name}: row {place[0]}, column {place[1]}")
        y += 22
    return canvas.figure()


def _describe(right: Place, found: Place) -> str:
    return (
        f"PyTorch finds the peak at row {right[0]}, column {right[1]}; "
        f"the file finds it at row {found[0]}, column {found[1]}."
    )
