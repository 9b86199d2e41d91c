"""Which boxes a suppression keeps: side by side, and round by round with who removes whom."""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from course.kit.figures.palette import KIND_COLOURS
from course.kit.figures.pictures import around, draw_box, draw_picture, draw_tag, tag_corner
from course.kit.figures.svg import FAINT, INK, RULE, Canvas, Figure

SIDE, GAP, TOP, HEAD, ROW, MARGIN = 190, 16, 44, 24, 19, 5
KEPT, BACK, GONE = KIND_COLOURS[0], KIND_COLOURS[1], KIND_COLOURS[2]


def kept_boxes(image: ArrayLike, boxes: ArrayLike, keeps: Mapping[str, ArrayLike], title: str) -> Figure:
    """The part of a picture that holds all boxes, once for each way of choosing among them.

    image (3, H, W) uint8; boxes (R, 4), best first; keeps: in words, which boxes (R,) bool are kept.
    """
    corners = np.asarray(boxes, dtype=float)
    masks = {words: _mask(keep, len(corners)) for words, keep in keeps.items()}
    told = "; ".join(f"{words}: {_numbers(keep)}" for words, keep in masks.items())
    width = GAP + len(masks) * (SIDE + GAP)
    canvas = Canvas(width, TOP + HEAD + SIDE + GAP, title, f"{len(corners)} boxes, best first. {told}.", at=(GAP, 26))
    for k, (words, keep) in enumerate(masks.items()):
        x = GAP + k * (SIDE + GAP)
        canvas.text(x, TOP + HEAD - 8, f"{words}: {keep.sum()}", font_weight="bold")
        _draw_panel(canvas, image, corners, x, dict.fromkeys(np.flatnonzero(keep).tolist(), KEPT), keep.sum() <= 6)
    return canvas.figure()


def suppression_rounds(
    image: ArrayLike, boxes: ArrayLike, suppresses: ArrayLike, history: Sequence[ArrayLike]
) -> Figure:
    """Suppression by rounds: which boxes each round keeps, and below, who removes whom and who is given back.

    image (3, H, W) uint8; boxes (R, 4), best first; suppresses (R, R) bool: box i may remove box j; history: (R,) bool
    each, the boxes that are kept before the first round, after it, and so on; at most 8 of them.
    """
    corners, rule = np.asarray(boxes, dtype=float), np.asarray(suppresses, dtype=bool)
    masks = [_mask(keep, len(corners)) for keep in history]
    if not 1 <= len(masks) <= 8:
        raise ValueError(f"`history` has {len(masks)} entries; 1 to 8 can be drawn")
    counts = ", ".join(str(keep.sum()) for keep in masks)
    height = TOP + HEAD + SIDE + GAP + ROW * len(corners) + GAP
    width = GAP + len(masks) * (SIDE + GAP)
    canvas = Canvas(width, height, f"Boxes kept after each round: {counts}", _describe(masks), at=(GAP, 26))
    for k, keep in enumerate(masks):
        before = masks[k - 1] if k else keep
        x = GAP + k * (SIDE + GAP)
        canvas.text(x, TOP + HEAD - 8, f"round {k}: {keep.sum()}" if k else f"all: {keep.sum()}", font_weight="bold")
        colours = {int(j): KEPT if before[j] else BACK for j in np.flatnonzero(keep)}
        colours |= {int(j): GONE for j in np.flatnonzero(before & ~keep)} if k > 1 else {}
        _draw_panel(canvas, image, corners, x, colours, k > 0)
        _draw_column(canvas, x, keep, before, rule, k)
        for j in np.flatnonzero(keep & ~before).tolist():
            removers = np.flatnonzero(rule[:, j] & masks[max(k - 2, 0)] & ~before)
            if len(removers):
                _draw_arrow(canvas, x, int(removers[0]), j)
    return canvas.figure()


def _draw_panel(
    canvas: Canvas, image: ArrayLike, boxes: NDArray, x: float, colours: Mapping[int, str], tags: bool
) -> None:
    """The picture with some of its boxes, each in its colour; removed ones dashed and first, so they lie below."""
    part, corner = around(image, boxes, MARGIN)
    origin = x, TOP + HEAD
    scale, moved = draw_picture(canvas, part, *origin, SIDE), boxes - np.tile(corner, 2)
    for j in sorted(colours, key=lambda j: (colours[j] != GONE, j)):
        draw_box(canvas, moved[j], origin, scale, colours[j], "3 3" if colours[j] == GONE else None)
    taken: list[tuple[float, float]] = []
    for j in sorted(colours) if tags else ():
        if colours[j] != GONE:
            (left, over), below = tag_corner(moved[j], origin, scale, SIDE), origin[1] + moved[j][3] * scale + 16
            places = [(left, over), (left, below), (left + 26, below), (left + 26, over), (left + 52, over)]
            free = [p for p in places if all(abs(p[0] - x) > 24 or abs(p[1] - y) > 17 for x, y in taken)]
            taken.append((free or places)[0])
            draw_tag(canvas, str(j + 1), *taken[-1], colours[j])


def _draw_column(canvas: Canvas, x: float, keep: NDArray, before: NDArray, rule: NDArray, k: int) -> None:
    """What became of every box in round k, and an arrow to each that is given back from the box that removed it."""
    top = TOP + HEAD + SIDE + GAP
    for j in range(len(keep)):
        y = top + j * ROW
        removers = np.flatnonzero(rule[:, j] & before) if k else np.empty(0, int)
        if keep[j]:
            words, colour = ("kept", KEPT) if before[j] else ("given back", BACK)
        else:
            words, colour = f"removed by {removers[0] + 1}" if len(removers) else "removed", GONE
        bold = "bold" if keep[j] else None
        canvas.line(x, y + ROW - 1, x + SIDE, y + ROW - 1, stroke=RULE)
        canvas.rect(x, y + 4, 10, 10, fill=colour if keep[j] else "none", stroke=colour)
        canvas.text(x + 30, y + 14, j + 1, size=12, anchor="end", font_weight="bold", fill=INK if keep[j] else FAINT)
        canvas.text(x + 40, y + 14, words, size=12, font_weight=bold, fill=INK if keep[j] else FAINT)


def _draw_arrow(canvas: Canvas, x: float, remover: int, back: int) -> None:
    """From the box that removed another and is gone, in the column before, to the one that is given back."""
    y1, y2 = (TOP + HEAD + SIDE + GAP + ROW * j + 9 for j in (remover, back))
    canvas.path(f"M{x - GAP - 62:g} {y1:g}L{x - 3:g} {y2:g}", stroke=BACK, stroke_width=1.6, fill="none")
    slope = math.atan2(y2 - y1, GAP + 59)
    ends = [(x - 3 - 8 * math.cos(slope + turn), y2 - 8 * math.sin(slope + turn)) for turn in (0.45, -0.45)]
    canvas.polyline([ends[0], (x - 3, y2), ends[1]], stroke=BACK, stroke_width=1.6)


def _mask(keep: ArrayLike, count: int) -> NDArray:
    mask = np.asarray(keep, dtype=bool)
    if mask.shape != (count,):
        raise ValueError(f"one entry for each of {count} boxes is wanted, got {mask.shape}")
    return mask


def _numbers(keep: NDArray) -> str:
    return ", ".join(str(j + 1) for j in np.flatnonzero(keep)) or "none"


def _describe(masks: Sequence[NDArray]) -> str:
    told = [f"{len(masks[0])} boxes, best first"]
    for k, (before, keep) in enumerate(itertools.pairwise(masks), start=1):
        told.append(f"round {k} keeps {_numbers(keep)}")
        if (keep & ~before).any():
            told.append(f"of which {_numbers(keep & ~before)} are given back")
    return "; ".join(told) + "."
