"""A gallery of a detector's worst errors: what it is sure of and wrong, and what it missed."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from course.kit.figures.palette import BLACK, WRONG_COLOUR
from course.kit.figures.pictures import around, draw_box, draw_legend, draw_picture, iou
from course.kit.figures.svg import FAINT, Canvas, Figure
from course.lessons.nb21.detection_errors import DetectionError
from frcnn_lite.data import DetectionDataset
from frcnn_lite.engine import Judged

GAP, TOP, CAPTION = 16, 92, 56
FOUND, MISSED, TRUE = ("found", WRONG_COLOUR, None), ("missed", WRONG_COLOUR, "4 3"), ("true box", BLACK, "4 3")


def worst_errors(
    errors: Sequence[DetectionError], judged: Sequence[Judged], data: DetectionDataset, most: int = 12, side: int = 160
) -> Figure:
    """The surroundings of at most `most` errors, the first ones; up to a third of them are missed objects.

    errors: of `find_errors(judged)`, all or some; judged: of `engine.judge(model, data)`; side: pixels of one.
    """
    missed, wrong = ([error for error in errors if (error.kind == "missed") is which] for which in (True, False))
    missed = missed[: max(most // 3, most - len(wrong))]
    shown = [*wrong[: most - len(missed)], *missed]
    words = [_words(error, judged[error.picture], data.class_names) for error in shown]
    counts = ", ".join(f"{n} {kind}" for kind, n in Counter(error.kind for error in errors).most_common())
    told = ". ".join([f"Errors: {counts or 'none'}", *(", ".join(filter(None, lines)) for lines in words)])
    size = GAP + 4 * (side + GAP), TOP + -(-len(shown) // 4) * (side + CAPTION + GAP)
    canvas = Canvas(*size, "Worst errors", f"{told}.", at=(16, 26))
    draw_legend(canvas, 16, (FOUND, MISSED, TRUE), step=90)
    canvas.text(16, 76, f"errors of each kind: {counts or 'none'}", size=12, fill=FAINT)
    for k, (error, lines) in enumerate(zip(shown, words, strict=True)):
        x, y = GAP + k % 4 * (side + GAP), TOP + k // 4 * (side + CAPTION + GAP)
        _draw_boxes(canvas, error, judged[error.picture], data[error.picture].image.numpy(), (x, y), side)
        for row, line in enumerate(lines):
            canvas.text(x, y + side + 16 + 15 * row, line, size=12, font_weight=None if row else "bold")
    return canvas.figure()


def _draw_boxes(
    canvas: Canvas, error: DetectionError, truth: Judged, image: NDArray, origin: tuple[float, float], side: int
) -> None:
    boxes = np.stack([error.box.numpy(), *(truth.boxes[[error.object]].numpy() if error.object is not None else ())])
    part, corner = around(image, boxes, margin=(boxes[:, 2:] - boxes[:, :2]).max() / 2)
    every = max(1, max(part.shape) // side)  # of a large picture, no more pixels than are seen
    scale = draw_picture(canvas, part[:, ::every, ::every], *origin, side) / every
    styles = [MISSED] if error.kind == "missed" else [FOUND, TRUE]
    for box, (_, colour, dashes) in reversed([*zip(boxes - np.tile(corner, 2), styles, strict=False)]):
        draw_box(canvas, box, origin, scale, colour, dashes)


def _words(error: DetectionError, truth: Judged, class_names: Sequence[str]) -> tuple[str, str, str]:
    """Three lines: the kind, what was said (or missed) in which picture, and what is there."""
    said, there = f"{class_names[error.label]} at {error.score:.2f}", ""
    if error.kind == "missed":
        said = class_names[error.label]
    elif error.object is not None:
        overlap = iou(error.box.numpy(), truth.boxes[[error.object]].numpy())[0]
        there = f"true {class_names[int(truth.labels[error.object])]}, IoU {overlap:.2f}"
    return error.kind, f"{said}, picture {truth.image_id}", there
