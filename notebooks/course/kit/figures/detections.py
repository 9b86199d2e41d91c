"""What a detector found beside what is there: true boxes dashed, predictions solid and coloured by right or wrong."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from course.kit.figures.palette import BLACK, RIGHT_COLOUR, WRONG_COLOUR
from course.kit.figures.pictures import draw_box, draw_legend, draw_picture, draw_tag, iou, tag_corner
from course.kit.figures.svg import FAINT, Canvas, Figure

GAP, TOP, CAPTION = 12, 68, 24
LEGEND = (("right", RIGHT_COLOUR, None), ("wrong", WRONG_COLOUR, None), ("true box", BLACK, "4 3"))


def detections(
    images: Sequence[ArrayLike],
    found: Sequence[tuple[ArrayLike, ArrayLike, ArrayLike]],
    truth: Sequence[tuple[ArrayLike, ArrayLike]],
    columns: int = 4,
    side: int = 200,
    min_score: float = 0.5,
    iou_threshold: float = 0.5,
) -> Figure:
    """Pictures with predicted and true boxes.

    images: (3, H, W) uint8 each; found: (boxes (n, 4), scores (n,), labels (n,)) each, best score first;
    truth: (boxes (m, 4), labels (m,)) each, label -1 marking padding. A prediction is right when it has the label of a
    true box that no better prediction has taken and overlaps it by `iou_threshold` or more (the rule of PASCAL VOC,
    Everingham et al. 2010).
    """
    if not len(images) == len(found) == len(truth):
        raise ValueError(f"{len(images)} images, {len(found)} found and {len(truth)} truth: one of each per picture")
    columns = min(columns, max(len(images), 1))
    lines = -(-len(images) // columns)
    judged = [judge(f, t, min_score, iou_threshold) for f, t in zip(found, truth, strict=True)]
    size = (max(GAP + columns * (side + GAP), 440), TOP + lines * (side + CAPTION + GAP))
    canvas = Canvas(*size, f"Detections in {len(images)} pictures", _describe(judged))
    canvas.text(16, 26, "Found and true boxes", size=16, font_weight="bold")
    draw_legend(canvas, 16, LEGEND, step=90)
    for i, (image, picture) in enumerate(zip(images, judged, strict=True)):
        origin = (GAP + i % columns * (side + GAP), TOP + i // columns * (side + CAPTION + GAP))
        scale = draw_picture(canvas, image, *origin, side)
        for box in picture.true_boxes:
            draw_box(canvas, box, origin, scale, BLACK, dashes="4 3")
        for box, label, right in zip(picture.boxes, picture.labels, picture.right, strict=True):
            colour = RIGHT_COLOUR if right else WRONG_COLOUR
            draw_box(canvas, box, origin, scale, colour)
            draw_tag(canvas, str(int(label)), *tag_corner(box, origin, scale, side), colour)
        canvas.text(origin[0], origin[1] + side + 16, picture.words, size=12, fill=FAINT)
    return canvas.figure()


class JudgedPicture:
    """Predictions of one picture above the score, and which of them are right."""

    def __init__(self, boxes: NDArray, labels: NDArray, right: list[bool], true_boxes: NDArray) -> None:
        self.boxes, self.labels, self.right, self.true_boxes = boxes, labels, right, true_boxes
        hits = sum(right)
        self.words = f"{hits} right, {len(right) - hits} wrong, {len(true_boxes) - hits} missed"


def judge(
    found: tuple[ArrayLike, ArrayLike, ArrayLike],
    truth: tuple[ArrayLike, ArrayLike],
    min_score: float,
    iou_threshold: float,
) -> JudgedPicture:
    boxes, scores, labels = map(np.asarray, found)
    keep = scores >= min_score
    boxes, labels = boxes[keep], labels[keep]
    true_boxes, true_labels = map(np.asarray, truth)
    true_boxes, true_labels = true_boxes[true_labels >= 0], true_labels[true_labels >= 0]
    free = np.ones(len(true_boxes), dtype=bool)
    right = []
    for box, label in zip(boxes, labels, strict=True):
        overlap = np.where(free & (true_labels == label), iou(box, true_boxes), 0.0)
        best = int(overlap.argmax()) if len(overlap) else -1
        hit = best >= 0 and bool(overlap[best] >= iou_threshold)
        if hit:
            free[best] = False
        right.append(hit)
    return JudgedPicture(boxes, labels, right, true_boxes)


def _describe(judged: Sequence[JudgedPicture]) -> str:
    return "; ".join(f"picture {i}: {picture.words}" for i, picture in enumerate(judged, start=1)) + "."
