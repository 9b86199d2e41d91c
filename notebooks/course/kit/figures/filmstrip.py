"""The same pictures again and again, with what a detector finds in them at different moments."""

from collections.abc import Mapping, Sequence

from numpy.typing import ArrayLike

from course.kit.figures.detections import LEGEND, JudgedPicture, judge
from course.kit.figures.indexed_png import indexed_png
from course.kit.figures.palette import BLACK, RIGHT_COLOUR, WRONG_COLOUR
from course.kit.figures.pictures import draw_box, draw_legend, draw_picture, draw_tag, tag_corner
from course.kit.figures.svg import FAINT, Canvas, Figure

Found = Sequence[tuple[ArrayLike, ArrayLike, ArrayLike]]
GAP, TOP, HEAD = 10, 72, 40


def filmstrip(
    images: Sequence[ArrayLike],
    frames: Mapping[str, tuple[str, Found]],
    truth: Sequence[tuple[ArrayLike, ArrayLike]],
    title: str,
    side: int = 128,
    min_score: float = 0.5,
    across: bool = True,
) -> Figure:
    """A column for each frame, a row for each picture; predictions as `figures.detections` draws them.

    images: (3, H, W) uint8 each; frames: heading -> (a second line, what was found in each image: boxes (n, 4), scores
    (n,), labels (n,)); truth: (boxes (m, 4), labels (m,)) of each image; across: False for a row for each frame.
    """
    judged = {
        name: [judge(found, true, min_score, 0.5) for found, true in zip(found_in_all, truth, strict=True)]
        for name, (_, found_in_all) in frames.items()
    }
    words = {name: "; ".join(picture.words for picture in pictures) for name, pictures in judged.items()}
    told = ". ".join(f"{' '.join(filter(None, (name, frames[name][0])))}: {words[name]}" for name in judged)
    cell = side + GAP
    if across:
        size = GAP + max(len(frames), 3) * cell, TOP + HEAD + len(images) * cell
    else:
        size = GAP + max(len(images), 3) * cell, TOP + len(frames) * (HEAD + cell)
    canvas = Canvas(*size, title, f"{told}.", at=(16, 26))
    draw_legend(canvas, 16, LEGEND, step=90)
    for place, (name, pictures) in enumerate(judged.items()):
        x, y = (GAP + place * cell, TOP) if across else (GAP, TOP + place * (HEAD + cell))
        canvas.text(x, y + 12, name, size=12, font_weight="bold")
        canvas.text(x, y + 29, frames[name][0], size=12, fill=FAINT)
        for number, (image, picture) in enumerate(zip(images, pictures, strict=True)):
            origin = (x, y + HEAD + number * cell) if across else (x + number * cell, y + HEAD)
            _draw_frame(canvas, image, picture, origin, side)
    return canvas.figure()


def _draw_frame(
    canvas: Canvas, image: ArrayLike, picture: JudgedPicture, origin: tuple[float, float], side: int
) -> None:
    scale = draw_picture(canvas, image, *origin, side, indexed_png)
    for box in picture.true_boxes:
        draw_box(canvas, box, origin, scale, BLACK, dashes="4 3")
    for box, label, right in reversed([*zip(picture.boxes, picture.labels, picture.right, strict=True)]):
        colour = RIGHT_COLOUR if right else WRONG_COLOUR
        draw_box(canvas, box, origin, scale, colour)
        draw_tag(canvas, str(int(label)), *tag_corner(box, origin, scale, side), colour)
