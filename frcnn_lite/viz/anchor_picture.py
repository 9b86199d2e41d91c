"""Anchors over a picture, by what training makes of them: positive, background, or left out."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from frcnn_lite.viz.palette import BLACK, BLUE, ORANGE, VERMILLION
from frcnn_lite.viz.pictures import draw_box, draw_picture
from frcnn_lite.viz.svg import FAINT, PAPER, Canvas, Figure

GAP, TOP, FOOT = 14, 84, 14
POSITIVE, BACKGROUND, LEFT_OUT = 1, 0, -1
LEGEND = (
    ("positive anchor", BLUE, None),
    ("left out", ORANGE, "3 3"),
    ("true box", BLACK, "6 3"),
)


def anchor_picture(
    image: ArrayLike,
    boxes: ArrayLike,
    anchors: ArrayLike,
    labels: ArrayLike,
    title: str,
    dontcare: ArrayLike = (),
    side: int = 460,
) -> Figure:
    """A picture with its anchors.

    image (3, H, W) uint8; boxes (G, 4) true ones; anchors (N, 4); labels (N,): 1 positive, 0 background, -1 left out;
    dontcare (D, 4) areas. Background anchors are many, so that only their middles are drawn.
    """
    states, where = np.asarray(labels), np.asarray(anchors, dtype=float)
    if states.shape != where.shape[:1]:
        raise ValueError(f"labels must have one entry for each of {len(where)} anchors, got shape {states.shape}")
    truth, areas = np.asarray(boxes, dtype=float), np.asarray(dontcare, dtype=float).reshape(-1, 4)
    canvas = Canvas(side + 2 * GAP, TOP + side + FOOT, title, _describe(states, len(truth), len(areas)))
    canvas.text(GAP, 26, title, size=16, font_weight="bold")
    _draw_legend(canvas, states, len(areas))
    origin = (GAP, TOP)
    scale = draw_picture(canvas, image, *origin, side)
    for x1, y1, x2, y2 in areas:
        place = (origin[0] + x1 * scale, origin[1] + y1 * scale, (x2 - x1) * scale, (y2 - y1) * scale)
        canvas.rect(*place, fill=PAPER, fill_opacity=0.45, stroke=BLACK)
        canvas.hatch(*place, step=10)
    _draw_middles(canvas, where[states == BACKGROUND], origin, scale, side)
    for x1, y1, x2, y2 in where[states == LEFT_OUT]:  # thin: they are many
        place = (origin[0] + x1 * scale, origin[1] + y1 * scale, (x2 - x1) * scale, (y2 - y1) * scale)
        canvas.rect(*place, fill="none", stroke=ORANGE, stroke_width=1.2, stroke_dasharray="3 3")
    for box in where[states == POSITIVE]:
        draw_box(canvas, box, origin, scale, BLUE)
    for box in truth:
        draw_box(canvas, box, origin, scale, BLACK, dashes="6 3")
    return canvas.figure()


def _draw_middles(canvas: Canvas, boxes: NDArray, origin: tuple[float, float], scale: float, side: float) -> None:
    """A dot a cell: anchors of one cell share their middle."""
    for x, y in sorted({tuple(middle) for middle in ((boxes[:, :2] + boxes[:, 2:]) / 2).tolist()}):
        if x * scale < side and y * scale < side:
            canvas.circle(origin[0] + x * scale, origin[1] + y * scale, 2.2, fill=VERMILLION, stroke=PAPER)


def _draw_legend(canvas: Canvas, states: NDArray, areas: int) -> None:
    x: float = GAP
    for words, colour, dashes in LEGEND:
        canvas.rect(x, 40, 18, 14, fill="none", stroke=colour, stroke_width=2, stroke_dasharray=dashes)
        canvas.text(x + 26, 52, words, size=12)
        x += 150 if words == "positive anchor" else 105
    canvas.circle(x + 8, 47, 3, fill=VERMILLION)
    canvas.text(x + 20, 52, "background", size=12)
    canvas.text(GAP, 73, _counts(states) + (", don't-care areas hatched" if areas else ""), size=12, fill=FAINT)


def _counts(states: NDArray) -> str:
    named: Sequence[tuple[str, int]] = (("positive", POSITIVE), ("background", BACKGROUND), ("left out", LEFT_OUT))
    return ", ".join(f"{int((states == state).sum())} {name}" for name, state in named)


def _describe(states: NDArray, truth: int, areas: int) -> str:
    hatched = f", and {areas} don't-care areas" if areas else ""
    return f"{len(states)} anchors over a picture with {truth} true boxes{hatched}: {_counts(states)}."
