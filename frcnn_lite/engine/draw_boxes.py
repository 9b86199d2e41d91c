"""Boxes with captions, drawn into a picture's own pixels."""

from collections.abc import Sequence

from PIL import Image, ImageDraw
from torch import Tensor

# Okabe and Ito's colours, told apart by colour-blind readers too: jfly.uni-koeln.de/color (2008).
COLOURS = ("#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7")


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
