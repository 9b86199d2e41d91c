"""Greedy non-maximum suppression, one step of it: the box just kept, those it removes, those still waiting."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from course.kit.figures.palette import KIND_COLOURS
from course.kit.figures.pictures import around, draw_box, draw_legend, draw_picture, draw_tag, iou, tag_corner
from course.kit.figures.svg import FAINT, INK, RULE, Canvas, Figure

GAP, TOP, LIST, ROW, MARGIN = 14, 84, 250, 20, 6
KEPT, NOW, REMOVED, WAITING = "kept", "kept now", "removed", "waiting"
STYLE: dict[str, tuple[str, str | None]] = {
    KEPT: (KIND_COLOURS[0], None),
    NOW: (INK, None),
    REMOVED: (KIND_COLOURS[2], "3 3"),
    WAITING: (KIND_COLOURS[1], "6 2"),
}


def suppression_step(image: ArrayLike, boxes: ArrayLike, scores: ArrayLike, threshold: float, step: int) -> Figure:
    """The state after `step` boxes have been kept (0: none yet).

    image (3, H, W) uint8, shown around the boxes; boxes (R, 4); scores (R,); threshold: a box goes when its IoU with
    the one kept is greater. A step beyond the last kept box shows the end.
    """
    corners, values = np.asarray(boxes, dtype=float), np.asarray(scores, dtype=float)
    order = np.argsort(-values, kind="stable")
    corners, values = corners[order], values[order]
    states, removed_by, done = _walk(corners, threshold, step)
    title = f"Suppression after {done} kept boxes, threshold {threshold:.2f}"
    size = LIST + 340 + 3 * GAP, TOP + max(340, ROW * len(values)) + GAP
    canvas = Canvas(*size, title, _describe(states, done), at=(GAP, 26))
    draw_legend(canvas, GAP, ((words, *style) for words, style in STYLE.items()), step=104)
    origin = (GAP, TOP)
    part, corner = around(image, corners, MARGIN)
    scale, corners = draw_picture(canvas, part, *origin, 340), corners - np.tile(corner, 2)
    for state in (WAITING, REMOVED, KEPT, NOW):
        for index in np.flatnonzero(states == state):
            colour, dashes = STYLE[state]
            draw_box(canvas, corners[index], origin, scale, colour, dashes)
            if state in (KEPT, NOW):
                draw_tag(canvas, str(index + 1), *tag_corner(corners[index], origin, scale, 340), colour)
    _draw_list(canvas, values, states, removed_by)
    return canvas.figure()


def _walk(boxes: NDArray, threshold: float, steps: int) -> tuple[NDArray, NDArray, int]:
    """What each box (best first) is after some steps, which box removed it, and how many steps there were."""
    states, removed_by, done = np.full(len(boxes), WAITING, dtype=object), np.full(len(boxes), -1), 0
    while done < steps and (states == WAITING).any():
        states[states == NOW] = KEPT
        best = int(np.flatnonzero(states == WAITING)[0])
        states[best] = NOW
        gone = (states == WAITING) & (iou(boxes[best], boxes) > threshold)
        states[gone], removed_by[gone] = REMOVED, best
        done += 1
    return states, removed_by, done


def _draw_list(canvas: Canvas, scores: NDArray, states: NDArray, removed_by: NDArray) -> None:
    left = 340 + 2 * GAP
    canvas.text(left, TOP - 10, "by falling score", size=12, fill=FAINT)
    for row, (score, state) in enumerate(zip(scores, states, strict=True)):
        y = TOP + row * ROW
        words = f"{state} by {removed_by[row] + 1}" if state == REMOVED else state
        canvas.line(left, y + ROW - 2, left + LIST, y + ROW - 2, stroke=RULE)
        canvas.rect(left, y + 3, 10, 10, fill=STYLE[state][0])
        canvas.text(left + 18, y + 13, f"{row + 1}", size=12, font_weight="bold")
        canvas.text(left + 46, y + 13, f"{score:.2f}", size=12)
        canvas.text(left + 96, y + 13, words, size=12)


def _describe(states: NDArray, done: int) -> str:
    count = {name: int((states == name).sum()) for name in STYLE}
    kept = count[KEPT] + count[NOW]
    return f"{len(states)} boxes by falling score; {kept} kept, {count[REMOVED]} removed, {count[WAITING]} waiting."
