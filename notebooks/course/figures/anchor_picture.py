"""Anchors over a picture, by what training makes of them: positive, background, or left out."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from course.figures.palette import BLACK, BLUE, ORANGE, VERMILLION
from course.figures.pictures import draw_box, draw_legend, draw_picture, placed
from course.figures.svg import FAINT, PAPER, Canvas, Figure

GAP, TOP, FOOT = 14, 84, 14
POSITIVE, BACKGROUND, LEFT_OUT = 1, 0, -1
LEGEND = (("positive anchor", BLUE, None), ("left out", ORANGE, "3 3"), ("true box", BLACK, "6 3"))


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
    canvas = Canvas(side + 2 * GAP, TOP + side + FOOT, title, _describe(states, len(truth), len(areas)), at=(GAP, 26))
    _draw_legend(canvas, states, len(areas))
    origin = (GAP, TOP)
    scale = draw_picture(canvas, image, *origin, side)
    for area in areas:
        place = placed(area, origin, scale)
        canvas.rect(*place, fill=PAPER, fill_opacity=0.45, stroke=BLACK)
        canvas.hatch(*place, step=10)
    _draw_middles(canvas, where[states == BACKGROUND], origin, scale, side)
    for box in where[states == LEFT_OUT]:  # thin: they are many
        canvas.rect(*placed(box, origin, scale), fill="none", stroke=ORANGE, stroke_width=1.2, stroke_dasharray="3 3")
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
    x = draw_legend(canvas, draw_legend(canvas, GAP, LEGEND[:1], step=150), LEGEND[1:], step=105)
    canvas.circle(x + 8, 47, 3, fill=VERMILLION)
    canvas.text(x + 20, 52, "background", size=12)
    canvas.text(GAP, 73, _counts(states) + (", don't-care areas hatched" if areas else ""), size=12, fill=FAINT)


def _counts(states: NDArray) -> str:
    shown = {"positive": POSITIVE, "background": BACKGROUND, **({"left out": LEFT_OUT} if LEFT_OUT in states else {})}
    return ", ".join(f"{int((states == state).sum())} {name}" for name, state in shown.items())


def _describe(states: NDArray, truth: int, areas: int) -> str:
    hatched = f", and {areas} don't-care areas" if areas else ""
    return f"{len(states)} anchors over a picture with {truth} true boxes{hatched}: {_counts(states)}."
