"""A small table of whole numbers as shaded cells: how many windows cover each pixel, say."""

from collections.abc import Sequence

from course.kit.figures.palette import KIND_COLOURS, blend, ink_on
from course.kit.figures.svg import RULE, Canvas, Figure

CELL, TOP, LEFT = 30, 44, 18


def number_grid(values: Sequence[Sequence[int]], title: str, description: str, colour: str = KIND_COLOURS[0]) -> Figure:
    """One cell a number, more of the colour for larger ones; `values` is a list of rows of equal length."""
    lengths = {len(row) for row in values}
    if len(lengths) != 1 or lengths == {0}:
        raise ValueError(f"`values` must be rows of one length, got lengths {sorted(lengths)}")
    greatest = max(max(row) for row in values) or 1
    width = max(2 * LEFT + lengths.pop() * CELL, 9 * len(title) + 2 * LEFT)
    canvas = Canvas(width, TOP + len(values) * CELL + 16, title, description, at=(LEFT, 26))
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            ground = blend(colour, 0.85 * value / greatest)
            x, y = LEFT + j * CELL, TOP + i * CELL
            canvas.rect(x + 1, y + 1, CELL - 2, CELL - 2, fill=ground, stroke=RULE, stroke_width=0.5, rx=3)
            canvas.text(x + CELL / 2, y + 20, value, anchor="middle", fill=ink_on(ground))
    return canvas.figure()
