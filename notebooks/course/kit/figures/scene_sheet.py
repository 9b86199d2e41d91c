"""A sheet of detection scenes with their boxes and labels."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from course.kit.figures.palette import KIND_COLOURS
from course.kit.figures.pictures import draw_box, draw_picture, draw_tag, tag_corner
from course.kit.figures.svg import Canvas, Figure

GAP, TOP = 12, 44


def scene_sheet(
    images: Sequence[ArrayLike],
    boxes: Sequence[ArrayLike],
    labels: Sequence[ArrayLike],
    columns: int = 4,
    side: int = 180,
    title: str = "Scenes and their boxes",
    boxes_are: str = "a box around every digit",
) -> Figure:
    """Pictures in reading order, each box tagged with its label.

    images: (3, H, W) uint8 each; boxes: (n, 4) xyxy pixels each; labels: (n,) int each, -1 marking padding;
    side: pixels of a picture's longer edge in the sheet; boxes_are: in words, for the text alternative.
    Raises ValueError when the three differ in length.
    """
    if not len(images) == len(boxes) == len(labels):
        raise ValueError(f"{len(images)} images, {len(boxes)} boxes and {len(labels)} labels: one of each per scene")
    columns = min(columns, max(len(images), 1))
    lines = -(-len(images) // columns)
    size = (GAP + columns * (side + GAP), TOP + lines * (side + GAP))
    canvas = Canvas(*size, title, _describe(labels, boxes_are), at=(16, 26))
    for i, (image, scene_boxes, scene_labels) in enumerate(zip(images, boxes, labels, strict=True)):
        origin = (GAP + i % columns * (side + GAP), TOP + i // columns * (side + GAP))
        scale = draw_picture(canvas, image, *origin, side)
        for box, label in zip(np.asarray(scene_boxes), np.asarray(scene_labels), strict=True):
            if label >= 0:
                colour = KIND_COLOURS[int(label) % len(KIND_COLOURS)]
                draw_box(canvas, box, origin, scale, colour)
                draw_tag(canvas, str(int(label)), *tag_corner(box, origin, scale, side), colour)
    return canvas.figure()


def _describe(labels: Sequence[ArrayLike], boxes_are: str) -> str:
    words = []
    for i, scene in enumerate(labels, start=1):
        shown = [str(int(label)) for label in np.asarray(scene) if label >= 0]
        words.append(f"picture {i}: {', '.join(shown) or 'nothing'}")
    return f"{len(labels)} pictures with {boxes_are}. {'; '.join(words)}."
