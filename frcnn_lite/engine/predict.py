"""From a picture to boxes, scores and labels, and to a picture that shows them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import Tensor

from frcnn_lite.data import Letterbox
from frcnn_lite.detection import FasterRCNN

MAX_SIDE = 1024  # pixels; larger pictures are shrunk for the detector, boxes are given in their own pixels
# Okabe and Ito's colours, told apart by colour-blind readers too: jfly.uni-koeln.de/color (2008).
COLOURS = ("#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7")


class Prediction(NamedTuple):
    """Objects of one picture, best first.

    Attributes:
        boxes: (n, 4) float32 xyxy, in pixels of the picture.
        scores: (n,) in 0..1.
        labels: (n,) int64.
    """

    boxes: Tensor
    scores: Tensor
    labels: Tensor

    def objects(self, class_names: Sequence[str]) -> list[dict[str, Any]]:
        """For JSON: one object each with its "label" by name, "score" and "box"."""
        rows = zip(self.labels.tolist(), self.scores.tolist(), self.boxes.tolist(), strict=True)
        return [{"label": class_names[label], "score": score, "box": box} for label, score, box in rows]


@torch.no_grad()
def predict(
    model: FasterRCNN, image: Image.Image, *, min_score: float = 0.5, letterbox: Letterbox | None = None
) -> Prediction:
    """Find objects in one picture of any size.

    Args:
        model: in eval mode.
        image: RGB, such as `read_image` gives.
        min_score: the least score of an object that counts as found, 0..1.
        letterbox: the canvas that the detector was trained on; None shows it the picture in its own size, which finds
            less where there was a canvas. A `Run` is called with a picture alone, and knows.
    """
    if not 0 <= min_score <= 1:
        raise ValueError(f"`min_score` must be between 0 and 1, got {min_score}")
    scale = MAX_SIDE / max(image.size)
    if letterbox is None:
        sides = [max(1, round(side * min(1.0, scale))) for side in image.size]
        letterbox = Letterbox(height=sides[1], width=sides[0])
    pixels = letterbox.place(torch.from_numpy(np.array(image)).permute(2, 0, 1))[None].to(torch.float32) / 255
    found = model(pixels.to(next(model.parameters()).device))
    boxes, scores, labels, valid = (field[0].cpu() for field in found)
    boxes = letterbox.to_picture(boxes, image.height, image.width)
    seen = (boxes[:, 2:] - boxes[:, :2] >= 1).all(dim=1)  # what is found on the grey beside the picture is not in it
    keep = valid & (scores >= min_score) & seen
    return Prediction(boxes[keep], scores[keep], labels[keep])


def draw_boxes(
    image: Image.Image, boxes: Tensor, labels: Sequence[str], colours: Sequence[str] = COLOURS
) -> Image.Image:
    """A copy of `image` with `boxes` (n, 4) outlined and captioned; captions that begin alike have one colour."""
    picture = image.copy()
    pen = ImageDraw.Draw(picture)
    width = max(1, round(max(image.size) / 256))
    initials = sorted({label[:1] for label in labels})
    for (x1, y1, x2, y2), label in zip(boxes.tolist(), labels, strict=True):
        colour = colours[initials.index(label[:1]) % len(colours)]
        pen.rectangle((x1, y1, x2 - 1, y2 - 1), outline=colour, width=width)
        left, top, right, bottom = pen.textbbox((x1, y1), label)
        # Above the box where there is room, else inside its upper edge.
        lift = min(bottom - y1, y1)
        pen.rectangle((left, top - lift, right, bottom - lift - 1), fill="black")
        pen.text((x1, y1 - lift), label, fill=colour)
    return picture
