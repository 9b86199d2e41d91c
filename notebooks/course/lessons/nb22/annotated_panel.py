"""A picture with the boxes of its annotation, as a panel among others: as they are written, right or wrong."""

import numpy as np
from numpy.typing import NDArray

from course.kit.figures.panels import Panel
from frcnn_lite.data import Picture, read_image

MISSING = (128, 128)  # height and width of the grey that stands for a picture which cannot be decoded
LEAST = 1.0  # pixels: a box without width is drawn as a line


def annotated_panel(picture: Picture, caption: str) -> Panel:
    """The boxes that an annotation names, with their names; the part that lies beyond the picture is not seen.

    A box with a coordinate that is not a number cannot be drawn.
    """
    shown = _shown(picture)
    boxes = np.array([box for _, box in shown], dtype=float).reshape(-1, 4)
    return Panel(_image(picture), caption, {"as written": boxes}, {"as written": [name for name, _ in shown]})


def _shown(picture: Picture) -> list[tuple[str, list[float]]]:
    entries = []
    for thing in picture.objects:
        x1, y1, x2, y2 = thing.box
        if np.isfinite(thing.box).all():
            entries.append((thing.name, [x1, y1, max(x2, x1 + LEAST), max(y2, y1 + LEAST)]))
    return entries


def _image(picture: Picture) -> NDArray:
    try:
        return np.moveaxis(np.asarray(read_image(picture.file)), -1, 0)
    except ValueError:
        return np.full((3, *MISSING), 208, dtype=np.uint8)
