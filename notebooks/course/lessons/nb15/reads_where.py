"""Where in the picture RoIAlign looks for a box: a panel for each value of `aligned`, on one grid of cells."""

from collections.abc import Sequence
from itertools import product

import torch
from torch import Tensor

from course.kit.figures.palette import KIND_COLOURS, blend
from course.kit.figures.svg import FAINT, INK, PAPER, RULE, Canvas, Figure
from frcnn_lite.ops.roi_align import align_weights

SIDE, GAP, TOP, FOOT, STRIDE, POINTS = 256, 24, 84, 78, 16, 2
COLOUR = KIND_COLOURS[2]


def reads_where(box: Sequence[float], aligned: Sequence[bool] = (False, True), bins: int = 2, cells: int = 8) -> Figure:
    """Which cells of a map of stride 16 RoIAlign reads for a box `xyxy` in pixels, and how far beside the box.

    Cell k stands for the pixels from 16k to 16(k + 1). A panel for each value in `aligned`, with 2 x 2 points a bin.
    The darker a cell, the more it counts.
    Raises ValueError for a box without width or height, or one that leaves the map of `cells` x `cells`.
    """
    x1, y1, x2, y2 = map(float, box)
    if not (0 <= x1 < x2 <= STRIDE * cells and 0 <= y1 < y2 <= STRIDE * cells):
        raise ValueError(f"`box` must lie inside the map of {STRIDE * cells} pixels, got {tuple(box)}")
    rois = torch.tensor([[0.0, x1, y1, x2, y2]])
    size, panels = SIDE / cells, [_aligned(rois, bins, cells, flag) for flag in aligned]
    told = [f"{name}: reads {words}, its middle {off}" for name, _, _, words, off in panels]
    corners = ", ".join(f"{corner:g}" for corner in box)
    description = f"The box ({corners}) in pixels, on a map of {cells} x {cells} cells. {'; '.join(told)}."
    width = max(GAP + len(panels) * (SIDE + GAP), 550)
    canvas = Canvas(width, TOP + SIDE + FOOT, "What is read for a box", description, at=(GAP, 28))
    for n, (name, weights, points, words, off) in enumerate(panels):
        left = GAP + n * (SIDE + GAP)
        canvas.text(left, TOP - 14, name, font_weight="bold")
        _draw_cells(canvas, left, size, weights)
        _draw_box(canvas, left, size / STRIDE, (x1, y1, x2, y2))
        for x, y in points:
            canvas.circle(left + x * size, TOP + y * size, 3, fill=COLOUR, stroke=PAPER, stroke_width=1)
        _draw_shift(canvas, left, size, ((x1 + x2) / 2, (y1 + y2) / 2), _middle(weights))
        canvas.text(left, TOP + SIDE + 20, f"reads {words}", size=12)
        canvas.text(left, TOP + SIDE + 38, f"its middle: {off}", size=12)
    canvas.text(
        GAP,
        TOP + SIDE + 62,
        f"dashed: the box, {x2 - x1:g} x {y2 - y1:g} pixels. Cross: its middle. Ring: the middle of what is read.",
        12,
        fill=FAINT,
    )
    return canvas.figure()


Panel = tuple[str, Tensor, list[tuple[float, float]], str, str]
"""Name, weight of each cell (H, W), points in cells, what is read, how far beside the box."""


def _aligned(rois: Tensor, bins: int, cells: int, aligned: bool) -> Panel:
    _, rows, columns = align_weights(rois, (cells, cells), bins, bins, 1 / STRIDE, POINTS, aligned)
    weights = rows[0].sum(0)[:, None] * columns[0].sum(0)
    count, (x1, y1, x2, y2) = bins * POINTS, (rois[0, 1:] / STRIDE - 0.5 * aligned).tolist()
    across = [x2 - x1, y2 - y1] if aligned else [max(x2 - x1, 1), max(y2 - y1, 1)]
    steps = [(k + 0.5) / count for k in range(count)]
    # A coordinate of the map counts from the middle of the first cell, which lies half a cell inside the picture.
    points = [(x1 + s * across[0] + 0.5, y1 + t * across[1] + 0.5) for t, s in product(steps, steps)]
    words = f"{count} x {count} points"
    return f"RoIAlign, aligned={aligned}", weights, points, words, _beside(rois, weights)


def _middle(weights: Tensor) -> tuple[float, float]:
    """Where the cells lie on average, in pixels (x, y)."""
    at = STRIDE * (torch.arange(len(weights)) + 0.5)  # noqa: FL002 drawn on the CPU
    return tuple((weights.sum(dim) @ at / weights.sum()).item() for dim in (0, 1))  # type: ignore[return-value]


def _beside(rois: Tensor, weights: Tensor) -> str:
    x, y = (
        float(mine - theirs)
        for mine, theirs in zip(_middle(weights), ((rois[0, 1:3] + rois[0, 3:]) / 2).tolist(), strict=True)
    )
    if max(abs(x), abs(y)) < 0.05:
        return "that of the box"
    sides = [("right", "left", x), ("down", "up", y)]
    return ", ".join(f"{abs(v):.3g} px {more if v > 0 else less}" for more, less, v in sides if abs(v) >= 0.05)


def _draw_cells(canvas: Canvas, left: float, size: float, weights: Tensor) -> None:
    greatest = float(weights.max())
    for y, x in product(*map(range, weights.shape)):
        share = 0.45 * float(weights[y, x]) / greatest
        fill = blend(COLOUR, share) if share > 0.002 else PAPER
        canvas.rect(left + x * size, TOP + y * size, size, size, fill=fill, stroke=RULE, stroke_width=0.7)


def _draw_box(canvas: Canvas, left: float, scale: float, box: tuple[float, float, float, float]) -> None:
    x1, y1, x2, y2 = box
    place = left + x1 * scale, TOP + y1 * scale, (x2 - x1) * scale, (y2 - y1) * scale
    canvas.rect(*place, fill="none", stroke=PAPER, stroke_width=4, stroke_opacity=0.6)
    canvas.rect(*place, fill="none", stroke=INK, stroke_width=1.8, stroke_dasharray="5 4")


def _draw_shift(canvas: Canvas, left: float, size: float, box: tuple[float, float], read: tuple[float, float]) -> None:
    """A cross at the middle of the box, a ring at the middle of what is read, and a line from one to the other."""
    (x, y), (u, v) = ((left + a * size / STRIDE, TOP + b * size / STRIDE) for a, b in (box, read))
    canvas.line(x, y, u, v, stroke=PAPER, stroke_width=5)
    canvas.line(x, y, u, v, stroke=INK, stroke_width=1.8)
    canvas.line(x - 5, y, x + 5, y, stroke_width=1.8)
    canvas.line(x, y - 5, x, y + 5, stroke_width=1.8)
    canvas.circle(u, v, 6, fill="none", stroke=PAPER, stroke_width=5)
    canvas.circle(u, v, 6, fill="none", stroke=COLOUR, stroke_width=2.2)
