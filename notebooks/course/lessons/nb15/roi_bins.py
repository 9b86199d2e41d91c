"""One region on a small feature map: where the box lies, what rounding makes of it, its bins and their maxima."""

from collections.abc import Sequence
from itertools import product

import torch
from torch import Tensor

from course.kit.figures.palette import KIND_COLOURS, blend, ink_on
from course.kit.figures.svg import FAINT, INK, PAPER, RULE, Canvas, Figure
from frcnn_lite.ops import roi_bins, roi_pool_with_argmax, round_half_away

CELL, LEFT, TOP, GAP = 44, 84, 116, 48
EDGE = 16
"""From a bracket to the next one, further out, where bins overlap."""
BIN, LARGEST, SAND = KIND_COLOURS[0], KIND_COLOURS[2], KIND_COLOURS[5]


def roi_figure(plane: Tensor, box: Sequence[float], bins: int = 2, spatial_scale: float = 1 / 16) -> Figure:
    """What RoI pooling takes from `plane` (H, W) for a box `xyxy` in pixels.

    Cell k stands for the pixels from k to k + 1 times the stride, and the box is drawn over the pixels that it covers.
    At most 12 x 12 cells and 4 x 4 bins. Brackets beside the map say which rows and columns each bin takes, and the
    largest cell of each bin is filled.
    """
    height, width = plane.shape
    if not (1 <= height <= 12 and 1 <= width <= 12 and 1 <= bins <= 4 and len(box) == 4):
        got = f"{tuple(plane.shape)}, {bins}, {box}"
        raise ValueError(f"want at most 12 x 12 cells, 1 to 4 bins, a box of 4; got {got}")
    rois = torch.tensor([[0.0, *box]])  # noqa: FL002 drawn on the CPU
    _, rows, columns = roi_bins(rois, (height, width), bins, bins, spatial_scale)
    pooled, argmax = roi_pool_with_argmax(plane.float()[None, None], rois, bins, spatial_scale)
    exact = rois[0, 1:] * spatial_scale
    across = LEFT + width * CELL + GAP
    title = f"A box on a map of stride {1 / spatial_scale:g}, pooled to {bins} x {bins}"
    rounded = _rounding(exact)
    words = _describe(box, rows[0], columns[0], pooled[0, 0]) + f" {rounded}"
    foot = TOP + max(height, bins) * CELL + 30
    canvas = Canvas(max(across + bins * CELL + 30, 480), foot + 48, title, words, at=(16, 30))
    _draw_map(canvas, plane, set(argmax.flatten().tolist()) - {-1})
    _draw_brackets(canvas, rows[0], columns[0])
    _draw_box(canvas, exact.tolist())
    _draw_numbers(canvas, plane)
    _draw_table(canvas, across, TOP, "RoI pooling", pooled[0, 0], argmax[0, 0] < 0)
    across_words, down_words = rounded.split("; ")
    canvas.text(16, foot, f"{across_words};")
    canvas.text(16, foot + 18, down_words)
    words = "dashed: the box; brackets: rows and columns of a bin; filled: what it gives"
    canvas.text(16, foot + 38, words, 12, fill=FAINT)
    return canvas.figure()


def _draw_numbers(canvas: Canvas, plane: Tensor) -> None:
    for y, x in product(*map(range, plane.shape)):
        across, down = LEFT + (x + 0.5) * CELL, TOP + (y + 0.5) * CELL + 5
        canvas.text(across, down, f"{float(plane[y, x]):g}", anchor="middle", fill=ink_on(SAND))


def _draw_map(canvas: Canvas, plane: Tensor, largest: set[int]) -> None:
    """The cells, darker where the feature is greater; those at the flat positions in `largest` have a colour."""
    low, high = float(plane.min()), float(plane.max())
    for k, (y, x) in enumerate(product(*map(range, plane.shape))):
        share = 0.05 + 0.45 * (float(plane[y, x]) - low) / ((high - low) or 1)
        colour = blend(LARGEST, 0.6) if k in largest else blend(SAND, share)
        left, top = LEFT + x * CELL, TOP + y * CELL
        canvas.rect(left, top, CELL, CELL, fill=colour, stroke=RULE, stroke_width=0.5)
    for x in range(plane.shape[1]):
        canvas.text(LEFT + (x + 0.5) * CELL, TOP - 8, x, size=12, anchor="middle", fill=FAINT)
    for y in range(plane.shape[0]):
        canvas.text(LEFT - 8, TOP + (y + 0.5) * CELL + 4, y, size=12, anchor="end", fill=FAINT)


def _draw_brackets(canvas: Canvas, rows: Tensor, columns: Tensor) -> None:
    """Beside the map, the cells of each bin: every second one further out, as neighbours may overlap."""
    for k, (start, end) in enumerate(columns.tolist()):
        if start < end:
            a, b, y = LEFT + start * CELL + 3, LEFT + end * CELL - 3, TOP - 26 - EDGE * (k % 2)
            canvas.polyline([(a, y + 6), (a, y), (b, y), (b, y + 6)], stroke=BIN, stroke_width=2.2)
    for k, (start, end) in enumerate(rows.tolist()):
        if start < end:
            a, b, x = TOP + start * CELL + 3, TOP + end * CELL - 3, LEFT - 26 - EDGE * (k % 2)
            canvas.polyline([(x + 6, a), (x, a), (x, b), (x + 6, b)], stroke=BIN, stroke_width=2.2)


def _draw_box(canvas: Canvas, exact: list[float]) -> None:
    x1, y1, x2, y2 = (edge + corner * CELL for edge, corner in zip((LEFT, TOP) * 2, exact, strict=True))
    corners = [(x1, y1), (x2, y1), (x2, y2), (x1, y2), (x1, y1)]
    canvas.polyline(corners, stroke=PAPER, stroke_width=5, stroke_opacity=0.5)
    canvas.polyline(corners, stroke=INK, stroke_width=1.8, stroke_dasharray="5 5")


def _draw_table(canvas: Canvas, x: float, y: float, name: str, values: Tensor, empty: Tensor) -> None:
    canvas.text(x, y - 8, name, font_weight="bold")
    for (i, row), j in product(enumerate(values.tolist()), range(values.shape[1])):
        left, top = x + j * CELL, y + i * CELL
        canvas.rect(left, top, CELL, CELL, fill=blend(BIN, 0.12), stroke=BIN)
        canvas.text(left + CELL / 2, top + CELL / 2 + 5, f"{row[j]:.4g}", anchor="middle")
        if empty[i, j]:
            canvas.hatch(left, top, CELL, CELL, stroke=FAINT)


def _rounding(exact: Tensor) -> str:
    x1, y1, x2, y2 = (f"{a:.2f} becomes {b:.0f}" for a, b in zip(exact, round_half_away(exact), strict=True))
    return f"In cells, across: {x1}, {x2}; down: {y1}, {y2}."


def _describe(box: Sequence[float], rows: Tensor, columns: Tensor, pooled: Tensor) -> str:
    def cells(bins: Tensor) -> str:
        spans = [f"{a} to {b - 1}" if b - a > 1 else str(a) if b > a else "none" for a, b in bins.tolist()]
        return " and ".join([", ".join(spans[:-1]), spans[-1]] if len(spans) > 1 else spans)

    def numbers(values: Tensor) -> str:
        return ", ".join(f"{value:.4g}" for value in values.flatten().tolist())

    corners = ", ".join(f"{corner:g}" for corner in box)
    return (
        f"The box ({corners}). Its bins take rows {cells(rows)}, columns {cells(columns)}. RoI pooling gives "
        f"{numbers(pooled)}."
    )
