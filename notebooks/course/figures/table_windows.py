"""A bin of RoI pooling, covered by four windows of a doubling table."""

from collections.abc import Sequence
from itertools import product

from course.figures.palette import BLUE, GREEN, ORANGE, PURPLE, VERMILLION, blend
from course.figures.svg import FAINT, INK, RULE, Canvas, Figure

CELL, LEFT, TOP, MARGIN = 24, 24, 56, 1


def table_windows(height: int, width: int) -> Figure:
    """A bin of height x width cells (1 to 16 each), with the four windows whose largest is the bin's.

    A window's sides are the largest powers of two that fit; one stands in each corner of the bin, and they may overlap.
    """
    if not (1 <= height <= 16 and 1 <= width <= 16):
        raise ValueError(f"want a bin of 1 to 16 cells each way, got {height} x {width}")
    tall, wide = (1 << side.bit_length() - 1 for side in (height, width))
    corners = [(top, left) for top in (0, height - tall) for left in (0, width - wide)]
    title = f"A bin of {height} x {width} cells from four windows of {tall} x {wide}"
    times = _times_covered(height, width, tall, wide, corners)
    most = max(map(max, times))
    words = (
        f"The windows start at rows {_both(0, height - tall)} and columns {_both(0, width - wide)} of the bin; every "
        f"cell lies in at least one of them, and in {most} at most. Four numbers are read instead of {height * width}."
    )
    size = (width + 2 * MARGIN) * CELL, (height + 2 * MARGIN) * CELL
    across = max(2 * LEFT + size[0], 9 * len(title) + 2 * LEFT)
    canvas = Canvas(across, TOP + size[1] + 40, title, words, at=(LEFT - 4, 30))
    for y, x in product(range(height + 2 * MARGIN), range(width + 2 * MARGIN)):
        canvas.rect(LEFT + x * CELL, TOP + y * CELL, CELL, CELL, fill="none", stroke=RULE, stroke_width=0.5)
    left, top = LEFT + MARGIN * CELL, TOP + MARGIN * CELL
    for y, x in product(range(height), range(width)):
        share = 0.12 + 0.18 * (times[y][x] - 1)
        canvas.rect(left + x * CELL, top + y * CELL, CELL, CELL, fill=blend(ORANGE, share), stroke=RULE)
        canvas.text(left + (x + 0.5) * CELL, top + y * CELL + 16, times[y][x], 11, anchor="middle", fill=INK)
    for k, ((y, x), colour) in enumerate(zip(corners, (BLUE, GREEN, PURPLE, VERMILLION), strict=True)):
        inset = 2 * k
        canvas.rect(left + x * CELL + inset, top + y * CELL + inset, wide * CELL - 2 * inset, tall * CELL - 2 * inset,
                    fill="none", stroke=colour, stroke_width=2, rx=4)  # fmt: skip
    canvas.text(LEFT - 4, TOP + size[1] + 22, "in each cell: how many of the windows hold it", 12, fill=FAINT)
    return canvas.figure()


def _times_covered(
    height: int, width: int, tall: int, wide: int, corners: Sequence[tuple[int, int]]
) -> list[list[int]]:
    """For each cell of the bin, how many different windows hold it."""
    return [
        [sum(top <= y < top + tall and left <= x < left + wide for top, left in set(corners)) for x in range(width)]
        for y in range(height)
    ]


def _both(one: int, other: int) -> str:
    return f"{one} and {other}" if one != other else str(one)
