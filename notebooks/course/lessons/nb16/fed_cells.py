"""Which cells of small feature maps a gradient goes to, one row of maps for each way to compute it."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from course.kit.figures.palette import BLACK, KIND_COLOURS, blend
from course.kit.figures.svg import FAINT, INK, RULE, Canvas, Figure

CELL, GAP, TOP, FOOT, LETTER = 17, 26, 48, 44, 7.4
RIGHT, WRONG = KIND_COLOURS[1], KIND_COLOURS[4]
CAPTION = "framed: cells with a gradient; crossed: not those of the first row"


def fed_cells(maps: Sequence[Tensor], gradients: Mapping[str, Sequence[Tensor]], title: str, bins: int = 2) -> Figure:
    """Draw each map with a frame around every cell whose gradient is not zero; the first row of `gradients` is right.

    maps: (1, 1, H, W) each, of one size, numbers from 0 on: the larger, the darker;
    gradients: label -> one for each map, of its shape; bins: a line is drawn where a map is cut into as many.

    Raises ValueError where a row does not have a gradient for each map.
    """
    if not maps or not gradients or any(len(row) != len(maps) for row in gradients.values()):
        counts = {label: len(row) for label, row in gradients.items()}
        raise ValueError(f"`gradients` must have rows of one gradient for each map, got {counts} for {len(maps)} maps")
    (height, width), first = maps[0].shape[-2:], next(iter(gradients.values()))
    left, side = 32 + LETTER * max(map(len, gradients)), width * CELL
    words = {label: _describe(first, row) for label, row in gradients.items()}
    size = max(left + len(maps) * (side + GAP), 40 + 9 * len(title), 32 + 6.9 * len(CAPTION))
    canvas = Canvas(
        size,
        TOP + len(gradients) * (height * CELL + GAP) + FOOT - GAP,
        title,
        ". ".join(f"{label}: {told}" for label, told in words.items()) + ".",
        at=(16, 28),
    )
    for i, (label, row) in enumerate(gradients.items()):
        y = TOP + i * (height * CELL + GAP)
        canvas.text(16, y + height * CELL / 2 + 4, label)
        for k, (map_, gradient) in enumerate(zip(maps, row, strict=True)):
            _draw_map(canvas, map_, gradient, first[k], left + k * (side + GAP), y, bins)
    canvas.text(16, canvas.height - 16, CAPTION, size=12, fill=FAINT)
    return canvas.figure()


def _draw_map(canvas: Canvas, map_: Tensor, gradient: Tensor, right: Tensor, x: float, y: float, bins: int) -> None:
    numbers = map_.detach().cpu()[0, 0]
    most = float(numbers.max()) or 1.0
    for i, line in enumerate(numbers.tolist()):
        for j, value in enumerate(line):
            canvas.rect(x + j * CELL, y + i * CELL, CELL, CELL, fill=blend(BLACK, 0.4 * value / most), stroke=RULE)
    height, width = numbers.shape
    for k in range(1, bins):
        canvas.line(x + k * width * CELL / bins, y, x + k * width * CELL / bins, y + height * CELL, stroke=INK)
        canvas.line(x, y + k * height * CELL / bins, x + width * CELL, y + k * height * CELL / bins, stroke=INK)
    for i, j in _fed(gradient):
        left, top, colour = x + j * CELL, y + i * CELL, RIGHT if (i, j) in _fed(right) else WRONG
        canvas.rect(left + 1, top + 1, CELL - 2, CELL - 2, fill="none", stroke=colour, stroke_width=3.5)
        if colour == WRONG:
            canvas.line(left + 4, top + 4, left + CELL - 4, top + CELL - 4, stroke=WRONG, stroke_width=2.5)
            canvas.line(left + 4, top + CELL - 4, left + CELL - 4, top + 4, stroke=WRONG, stroke_width=2.5)
    canvas.rect(x, y, width * CELL, height * CELL, fill="none", stroke=INK)


def _fed(gradient: Tensor) -> list[tuple[int, int]]:
    """Row and column of each cell with a gradient."""
    return [(i, j) for i, j in gradient.detach().cpu()[0, 0].nonzero().tolist()]


def _describe(right: Sequence[Tensor], row: Sequence[Tensor]) -> str:
    told = []
    for k, (expected, gradient) in enumerate(zip(right, row, strict=True), start=1):
        cells = _fed(gradient)
        wrong = sum(cell not in _fed(expected) for cell in cells)
        at = ", ".join(f"({i}, {j})" for i, j in cells)
        told.append(f"map {k}: gradient at {at or 'no cell'}" + (f", {wrong} of them wrong" if wrong else ""))
    return "; ".join(told)
