"""The cast of the series: ten handwritten digits, drawn as SVG paths so that a row of a batch has a face."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from course.kit.figures.palette import LOST_COLOUR, blend
from course.kit.figures.svg import INK, PAPER, RULE, Canvas, number
from frcnn_lite.data.digits import read_digits

SIDE = 8  # scikit-learn's digits are 8x8 cells of ink 0..16
LEVELS = 4  # tints of ink in a drawing; more cannot be told apart at this size


@lru_cache(maxsize=1)
def cast() -> NDArray[np.float32]:
    """The ten digits (10, 8, 8) float32 in 0..16: the first of each kind 0..9 in scikit-learn's bundled set."""
    images, labels = read_digits()
    first = [int(np.flatnonzero(labels == digit)[0]) for digit in range(10)]
    faces = images[first].astype(np.float32)
    faces.setflags(write=False)
    return faces


def draw_digit(
    canvas: Canvas, face: ArrayLike, x: float, y: float, size: float, edge: str = RULE, lost: bool = False
) -> None:
    """One digit on a tile of `size` pixels with a border of colour `edge`; a lost one is faded and hatched."""
    canvas.rect(x, y, size, size, fill=PAPER, rx=4)
    margin = size / 10
    cell = (size - 2 * margin) / SIDE
    place = f"translate({number(x + margin)} {number(y + margin)}) scale({cell:.4f})"
    for level, cells in enumerate(_runs_by_level(face), start=1):
        if cells:
            shade = blend(INK, level / LEVELS * (0.3 if lost else 1.0))
            canvas.path(cells, fill=shade, transform=place, shape_rendering="crispEdges")
    if lost:
        canvas.hatch(x + 1, y + 1, size - 2, size - 2, stroke=LOST_COLOUR)
    canvas.rect(x, y, size, size, fill="none", stroke=edge, stroke_width=2, rx=4)


def _runs_by_level(face: ArrayLike) -> Sequence[str]:
    """For each tint 1..LEVELS one path of the horizontal runs of cells that carry it, in units of a cell."""
    ink = np.asarray(face, dtype=np.float32)
    if ink.shape != (SIDE, SIDE):
        raise ValueError(f"`face` has shape {ink.shape}; a digit is ({SIDE}, {SIDE}) cells of ink 0..16")
    tint = np.rint(ink / 16 * LEVELS).astype(int)
    paths = [""] * LEVELS
    for row in range(SIDE):
        column = 0
        while column < SIDE:
            level, start = tint[row, column], column
            while column < SIDE and tint[row, column] == level:
                column += 1
            if level > 0:
                paths[level - 1] += f"M{start} {row}h{column - start}v1h-{column - start}z"
    return paths
