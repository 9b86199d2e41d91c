"""What the box head takes and gives: regions of a picture, what was pooled from each, and a bar for every score."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from course.kit.figures.indexed_png import indexed_png
from course.kit.figures.palette import KIND_COLOURS
from course.kit.figures.panels import Numbers, heat, numbers
from course.kit.figures.pictures import draw_box, draw_picture
from course.kit.figures.svg import FAINT, INK, RULE, Canvas, Figure

GAP, TOP, SIDE, BARS, BAR, MARGIN = 16, 66, 92, 84, 16, 8
INDIGO, TEAL, WINE = KIND_COLOURS[:3]


def region_scores(
    image: ArrayLike,
    boxes: Numbers,
    pooled: Numbers,
    scores: Numbers,
    names: Sequence[str],
    title: str,
) -> Figure:
    """A column for each region.

    image (3, H, W) uint8; boxes (n, 4) xyxy pixels; pooled (n, s, s), one channel of what was pooled; scores (n, C) in
    0..1; names: C words, the last one the background. Raises ValueError when they do not fit together.
    """
    places, grids, shares = (numbers(x) for x in (boxes, pooled, scores))
    if not len(places) == len(grids) == len(shares) or shares.shape[1:] != (len(names),):
        raise ValueError(f"{len(places)} boxes, {len(grids)} grids, scores {shares.shape}, {len(names)} names")
    column = max(2 * SIDE + 10, len(names) * BAR) + GAP
    size = max(GAP + len(places) * column, 2 * GAP + 9 * len(title)), TOP + SIDE + BARS + 76
    canvas = Canvas(*size, title, _describe(shares, names), at=(GAP, 26))
    low, high = grids.min(), grids.max()
    for k, (box, grid, share) in enumerate(zip(places, grids, shares, strict=True)):
        x = GAP + k * column
        canvas.text(x, TOP - 8, "the region", size=12, fill=FAINT)
        canvas.text(x + SIDE + 10, TOP - 8, f"pooled, {len(grid)} x {len(grid)}", size=12, fill=FAINT)
        _draw_region(canvas, np.asarray(image), box, x)
        draw_picture(canvas, heat(grid, low, high), x + SIDE + 10, TOP, SIDE)
        canvas.rect(x + SIDE + 10, TOP, SIDE, SIDE, fill="none", stroke=RULE)
        _draw_bars(canvas, share, names, x, TOP + SIDE + 28)
    return canvas.figure()


def _draw_region(canvas: Canvas, image: np.ndarray, box: np.ndarray, x: float) -> None:
    """The region and its surroundings, a square that may stand out of the picture (there it is grey)."""
    half = int(np.ceil((box[2:] - box[:2]).max() / 2)) + MARGIN
    left, top = (int(np.floor(middle)) - half for middle in (box[:2] + box[2:]) / 2)
    padded = np.pad(image, ((0, 0), (half * 2, half * 2), (half * 2, half * 2)), constant_values=225)
    part = padded[:, top + 2 * half : top + 4 * half, left + 2 * half : left + 4 * half]
    scale = draw_picture(canvas, part, x, TOP, SIDE, indexed_png)
    draw_box(canvas, (box - [left, top, left, top]).tolist(), (x, TOP), scale, INDIGO)


def _draw_bars(canvas: Canvas, share: np.ndarray, names: Sequence[str], x: float, y: float) -> None:
    best = int(share.argmax())
    for k, (value, name) in enumerate(zip(share, names, strict=True)):
        tall = BARS * float(value)
        colour = (WINE if k == len(names) - 1 else TEAL) if k == best else FAINT
        canvas.rect(x + k * BAR + 2, y + BARS - tall, BAR - 4, tall, fill=colour)
        canvas.text(x + (k + 0.5) * BAR, y + BARS + 15, name[:1], size=12, anchor="middle")
    canvas.line(x, y + BARS, x + len(names) * BAR, y + BARS, stroke=INK)
    canvas.text(x, y + BARS + 34, f"{names[best]}: {share[best]:.2f}", size=13, font_weight="bold")


def _describe(shares: np.ndarray, names: Sequence[str]) -> str:
    told = (f"region {k}: {names[int(share.argmax())]} {share.max():.2f}" for k, share in enumerate(shares, start=1))
    return f"{len(shares)} regions, each with what was pooled from it and {len(names)} scores. {'; '.join(told)}."
