"""A picture with the boxes of its annotation, as a panel among others: as they are written, right or wrong."""

import numpy as np
from numpy.typing import NDArray

from course.kit.figures.panels import Panel
from frcnn_lite.data import Picture, read_image

MISSING = (128, 128)  # height and width of the grey that stands for a picture which cannot be decoded
LEAST = 1.0  # pixels: a box without width is drawn as a line


def annotated_panel(picture: Picture, caption: str, repaired: Picture | None = None) -> Panel:
    """The boxes that an annotation names, with their names; the part that lies beyond the picture is not seen.

    A box with a coordinate that is not a number cannot be drawn. `repaired`: the same picture with other boxes; then
    only the boxes that one of the two has alone are drawn as written, and all of the repaired ones.
    """
    image = _image(picture)
    old, new = _shown(picture), _shown(repaired) if repaired else []
    if repaired:
        old = [entry for entry in old if entry not in new]
    boxes, tags = {"as written": _rows(old)}, {"as written": [] if repaired else [name for name, _ in old]}
    if repaired:
        boxes["repaired"], tags["repaired"] = _rows(new), [name for name, _ in new]
    return Panel(image, caption, boxes, tags)


def _rows(entries: list[tuple[str, list[float]]]) -> NDArray:
    return np.array([box for _, box in entries], dtype=float).reshape(-1, 4)


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
