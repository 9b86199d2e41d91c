"""Boxes of a data set by width and height, and which of them the anchors reach."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from course.kit.figures.palette import BLACK, RIGHT_COLOUR, WRONG_COLOUR
from course.kit.figures.svg import FAINT, RULE, Canvas, Figure
from frcnn_lite.ops import box_iou

SIDE, LEFT, TOP, RIGHT, FOOT = 400, 64, 70, 170, 52
MATCH_IOU = 0.5


def anchor_fit(boxes: ArrayLike, sizes: Sequence[float], ratios: Sequence[float], title: str) -> Figure:
    """Boxes (n, 4) `xyxy` pixels as points; anchors of `sizes` (square root of the area) and `ratios` (height / width)
    as crosses. A box is reached by an anchor that, centre on centre, overlaps it by an IoU of at least one half.

    Raises ValueError without boxes.
    """
    corners = np.asarray(boxes, dtype=float).reshape(-1, 4)
    if not len(corners):
        raise ValueError("`boxes` must hold at least one box, got none")
    shapes = corners[:, 2:] - corners[:, :2]
    anchors = np.array([(s / math.sqrt(r), s * math.sqrt(r)) for s in sizes for r in ratios])
    reached = _overlap(shapes, anchors).max(axis=1) >= MATCH_IOU
    description = (
        f"{len(shapes)} boxes by width and height, on logarithmic axes; anchors: {len(anchors)}; "
        f"{int(reached.sum())} boxes have one that overlaps them by half or more, {int((~reached).sum())} have none."
    )
    canvas = Canvas(LEFT + SIDE + RIGHT, TOP + SIDE + FOOT, title, description, at=(16, 28))
    low, high = _limits(np.concatenate([shapes, anchors]))
    _draw_axes(canvas, low, high)
    for (width, height), is_reached in zip(shapes, reached, strict=True):
        x, y = _place(width, height, low, high)
        if is_reached:
            canvas.circle(x, y, 3.5, fill=RIGHT_COLOUR, fill_opacity=0.6)
        else:
            canvas.rect(x - 3.5, y - 3.5, 7, 7, fill="none", stroke=WRONG_COLOUR, stroke_width=1.8)
    for width, height in anchors:
        x, y = _place(width, height, low, high)
        canvas.line(x - 8, y, x + 8, y, stroke=BLACK, stroke_width=2.5)
        canvas.line(x, y - 8, x, y + 8, stroke=BLACK, stroke_width=2.5)
    _draw_legend(canvas, int(reached.sum()), int((~reached).sum()), len(anchors))
    return canvas.figure()


def _overlap(shapes: NDArray, anchors: NDArray) -> NDArray:
    """IoU (n, m) of boxes and anchors, given as widths and heights, centre on centre."""
    centred = (torch.from_numpy(np.concatenate([-sides, sides], axis=1)) for sides in (shapes, anchors))
    return box_iou(*centred).numpy()


def _limits(shapes: NDArray) -> tuple[float, float]:
    """One range for both axes, so that a square stands on the diagonal: powers of two around all sides."""
    return 2.0 ** math.floor(math.log2(shapes.min())), 2.0 ** math.ceil(math.log2(shapes.max()))


def _place(width: float, height: float, low: float, high: float) -> tuple[float, float]:
    span = math.log(high / low)
    return LEFT + SIDE * math.log(width / low) / span, TOP + SIDE * (1 - math.log(height / low) / span)


def _draw_axes(canvas: Canvas, low: float, high: float) -> None:
    side = low
    while side <= high:
        x, y = _place(side, side, low, high)
        canvas.line(x, TOP, x, TOP + SIDE, stroke=RULE)
        canvas.line(LEFT, y, LEFT + SIDE, y, stroke=RULE)
        canvas.text(x, TOP + SIDE + 18, f"{side:g}", size=12, anchor="middle")
        canvas.text(LEFT - 8, y + 4, f"{side:g}", size=12, anchor="end")
        side *= 2
    canvas.line(LEFT, TOP + SIDE, LEFT + SIDE, TOP, stroke=RULE, stroke_dasharray="4 4")
    canvas.text(LEFT + SIDE / 2, TOP + SIDE + 40, "width in pixels", size=12, anchor="middle", fill=FAINT)
    canvas.text(16, TOP - 14, "height in pixels", size=12, fill=FAINT)


def _draw_legend(canvas: Canvas, reached: int, missed: int, anchors: int) -> None:
    x, y = LEFT + SIDE + 24, TOP + 14
    canvas.circle(x, y, 3.5, fill=RIGHT_COLOUR, fill_opacity=0.6)
    canvas.text(x + 14, y + 4, f"{reached} boxes reached", size=12)
    canvas.rect(x - 3.5, y + 20.5, 7, 7, fill="none", stroke=WRONG_COLOUR, stroke_width=1.8)
    canvas.text(x + 14, y + 28, f"{missed} out of reach", size=12)
    canvas.line(x - 7, y + 48, x + 7, y + 48, stroke=BLACK, stroke_width=2.5)
    canvas.line(x, y + 41, x, y + 55, stroke=BLACK, stroke_width=2.5)
    canvas.text(x + 14, y + 52, "1 anchor" if anchors == 1 else f"{anchors} anchors", size=12)
