"""A convolution as a matrix product: where the window stands, which row of the matrix it is, which pixel comes out."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.kit.figures.palette import KIND_COLOURS, blend
from course.kit.figures.svg import FAINT, INK, RULE, Canvas, Figure

PIXEL, CELL = 22, 11
TOP, LEFT, GAP = 82, 18, 46


def conv_matrix(
    image: Any, filters: Any, position: int, stride: int = 1, padding: int = 0, dilation: int = 1
) -> Figure:
    """Draw the step of a one-channel convolution that makes output pixel `position`, counted row by row.

    image: (H, W) numbers; filters: (kh, kw). The matrix in the middle is the feature matrix as Caffe's author drew it,
    one row a position, one column a tap of the window: the transpose of what `unfold` returns.
    Raises ValueError when the window does not fit or `position` is not one of the output's pixels.
    """
    steps = _Steps(np.asarray(image, dtype=float), np.asarray(filters, dtype=float), stride, padding, dilation)
    if not 0 <= position < len(steps.matrix):
        raise ValueError(f"`position` is {position}: the window has positions 0 to {len(steps.matrix) - 1}")
    rows, columns = steps.padded.shape
    (kh, kw), (oh, ow) = steps.filters.shape, steps.output.shape
    matrix_x = LEFT + columns * PIXEL + GAP
    filter_x = matrix_x + kh * kw * CELL + GAP
    output_x = filter_x + CELL + GAP
    height = TOP + max(rows * PIXEL, oh * ow * CELL, oh * PIXEL) + 34
    canvas = Canvas(max(output_x + ow * PIXEL + LEFT, 620), height, _title(steps, position), _describe(steps, position))
    canvas.text(LEFT, 26, _title(steps, position), size=16, font_weight="bold")
    _caption(canvas, LEFT, "image", f"{rows} x {columns}" + (", padded" if padding else ""))
    _caption(canvas, matrix_x, "feature matrix", f"{oh * ow} x {kh * kw}")
    _caption(canvas, filter_x - 12, "filter", f"{kh * kw} x 1")
    _caption(canvas, output_x, "output", f"{oh} x {ow}")
    _grid(canvas, steps.padded, LEFT, TOP, PIXEL)
    for y, x in steps.taps(position):
        canvas.rect(
            LEFT + x * PIXEL, TOP + y * PIXEL, PIXEL, PIXEL, fill="none", stroke=KIND_COLOURS[2], stroke_width=3
        )
    _grid(canvas, steps.matrix, matrix_x, TOP, CELL)
    row_y = TOP + position * CELL
    canvas.rect(matrix_x, row_y, kh * kw * CELL, CELL, fill="none", stroke=KIND_COLOURS[2], stroke_width=3)
    _grid(canvas, steps.filters.reshape(-1, 1), filter_x, TOP, CELL)
    canvas.rect(filter_x, TOP, CELL, kh * kw * CELL, fill="none", stroke=KIND_COLOURS[0], stroke_width=3)
    canvas.text(filter_x - GAP / 2, TOP + kh * kw * CELL / 2 + 5, "·", size=22, anchor="middle")
    canvas.text(output_x - GAP / 2, TOP + kh * kw * CELL / 2 + 5, "=", size=18, anchor="middle")
    _grid(canvas, steps.output, output_x, TOP, PIXEL)
    y, x = divmod(position, ow)
    canvas.rect(
        output_x + x * PIXEL, TOP + y * PIXEL, PIXEL, PIXEL, fill="none", stroke=KIND_COLOURS[2], stroke_width=3
    )
    return canvas.figure()


class _Steps:
    """The arithmetic, kept apart from the drawing."""

    def __init__(self, image: NDArray[Any], filters: NDArray[Any], stride: int, padding: int, dilation: int) -> None:
        self.filters, self.stride, self.dilation = filters, stride, dilation
        self.padded = np.pad(image, padding)
        spans = [dilation * (k - 1) + 1 for k in filters.shape]
        places = [(n - span) // stride + 1 for n, span in zip(self.padded.shape, spans, strict=True)]
        if min(places) < 1:
            raise ValueError(f"`filters` of {filters.shape} at dilation {dilation} do not fit into {self.padded.shape}")
        self.size = places[0], places[1]
        self.matrix = np.array([[self.padded[tap] for tap in self.taps(k)] for k in range(places[0] * places[1])])
        self.output = (self.matrix @ filters.reshape(-1)).reshape(self.size)

    def taps(self, position: int) -> list[tuple[int, int]]:
        """Pixels of the padded image under the window, in the order of the matrix's columns."""
        top, left = (self.stride * k for k in divmod(position, self.size[1]))
        kh, kw = self.filters.shape
        return [(top + i * self.dilation, left + j * self.dilation) for i in range(kh) for j in range(kw)]


def _grid(canvas: Canvas, values: NDArray[Any], x: float, y: float, side: float) -> None:
    """Cells shaded from white, which is 0, to ink; where there are negative numbers, to one colour for each sign."""
    most = float(np.abs(values).max()) or 1.0
    signed = bool((values < 0).any())
    for i, line in enumerate(values):
        for j, value in enumerate(line):
            ink = INK if not signed else KIND_COLOURS[2] if value < 0 else KIND_COLOURS[1]
            shade = blend(ink, round(0.9 * abs(float(value)) / most * 16) / 16)
            canvas.rect(x + j * side, y + i * side, side, side, fill=shade, stroke=RULE, stroke_width=0.5)


def _caption(canvas: Canvas, x: float, name: str, size: str) -> None:
    canvas.text(x, 54, name, size=13, font_weight="bold")
    canvas.text(x, 71, size, size=12, fill=FAINT)


def _title(steps: _Steps, position: int) -> str:
    return f"Position {position} of {len(steps.matrix)}: one row of the matrix, one pixel of the output"


def _describe(steps: _Steps, position: int) -> str:
    (top, left), (bottom, right) = steps.taps(position)[0], steps.taps(position)[-1]
    y, x = divmod(position, steps.size[1])
    rows, columns = steps.padded.shape
    positions, taps = steps.matrix.shape
    return (
        f"The window covers rows {top} to {bottom} and columns {left} to {right} of the {rows} x {columns} image; its "
        f"{taps} taps are row {position} of the {positions} x {taps} matrix. That row times the filter is the output's "
        f"pixel ({y}, {x})."
    )
