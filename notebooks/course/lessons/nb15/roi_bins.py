"""One region on a small feature map: where the box lies, what rounding makes of it, its bins and their maxima."""

from collections.abc import Sequence
from itertools import product

import torch
from torch import Tensor

from course.kit.figures.palette import KIND_COLOURS, blend, ink_on
from course.kit.figures.svg import FAINT, INK, PAPER, RULE, Canvas, Figure
from frcnn_lite.ops import roi_bins, roi_pool_with_argmax, round_half_away

CELL, LEFT, TOP, GAP = 44, 40, 84, 48
BIN, LARGEST, SAND = KIND_COLOURS[0], KIND_COLOURS[2], KIND_COLOURS[5]


def roi_figure(plane: Tensor, box: Sequence[float], bins: int = 2, spatial_scale: float = 1 / 16) -> Figure:
    """What RoI pooling takes from `plane` (H, W) for a box `xyxy` in pixels.

    Cell k stands for the pixels from k to k + 1 times the stride, and the box is drawn over the pixels that it covers.
    At most 12 x 12 cells and 4 x 4 bins. Each bin's largest feature is circled.
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
    canvas = Canvas(max(across + bins * CELL + 30, 640), foot + 36, title, words, at=(LEFT - 22, 30))
    _draw_map(canvas, plane)
    _draw_bins(canvas, rows[0], columns[0])
    _draw_box(canvas, exact.tolist())
    for where in sorted(set(argmax.flatten().tolist()) - {-1}):
        x, y = LEFT + (where % width + 0.5) * CELL, TOP + (where // width + 0.5) * CELL
        canvas.circle(x, y, CELL * 0.36, fill="none", stroke=LARGEST, stroke_width=2.5)
    _draw_numbers(canvas, plane)
    _draw_table(canvas, across, TOP, "RoI pooling", pooled[0, 0], argmax[0, 0] < 0)
    canvas.text(LEFT - 22, foot, rounded)
    canvas.text(
        LEFT - 22,
        foot + 20,
        "dashed: the box; rounded frames: the bins; circled: the largest cell of each bin",
        12,
        fill=FAINT,
    )
    return canvas.figure()


def _draw_numbers(canvas: Canvas, plane: Tensor) -> None:
    for y, x in product(*map(range, plane.shape)):
        across, down = LEFT + (x + 0.5) * CELL, TOP + (y + 0.5) * CELL + 5
        canvas.text(across, down, f"{float(plane[y, x]):g}", anchor="middle", fill=ink_on(SAND))


def _draw_map(canvas: Canvas, plane: Tensor) -> None:
    low, high = float(plane.min()), float(plane.max())
    for y, x in product(*map(range, plane.shape)):
        value = float(plane[y, x])
        colour = blend(SAND, 0.05 + 0.75 * (value - low) / ((high - low) or 1))
        left, top = LEFT + x * CELL, TOP + y * CELL
        canvas.rect(left, top, CELL, CELL, fill=colour, stroke=RULE, stroke_width=0.5)
    for x in range(plane.shape[1]):
        canvas.text(LEFT + (x + 0.5) * CELL, TOP - 8, x, size=11, anchor="middle", fill=FAINT)
    for y in range(plane.shape[0]):
        canvas.text(LEFT - 10, TOP + (y + 0.5) * CELL + 4, y, size=11, anchor="end", fill=FAINT)


def _draw_bins(canvas: Canvas, rows: Tensor, columns: Tensor) -> None:
    """Overlapping bins are drawn inside each other, each a little smaller than the one before."""
    for k, ((top, bottom), (left, right)) in enumerate(product(rows.tolist(), columns.tolist())):
        if top < bottom and left < right:
            inset = 2 + 2 * (k % 4)
            x, y = LEFT + left * CELL + inset, TOP + top * CELL + inset
            size = (right - left) * CELL - 2 * inset, (bottom - top) * CELL - 2 * inset
            canvas.rect(x, y, *size, fill="none", stroke=BIN, stroke_width=1.5, rx=4)


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
