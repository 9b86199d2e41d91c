"""Reasons to doubt a data set as a whole, where each picture by itself is sound: they are said, and nothing is done."""

import math
from collections.abc import Callable, Iterator, Sequence

from frcnn_lite.data.annotated import Picture
from frcnn_lite.data.image_file import Look

TOLERANCE = 1.0  # pixels: whether tools count from 0 or from 1 is not worth a report
Box = tuple[float, float, float, float]
Seen = Sequence[tuple[Picture, Look]]

# How four numbers are meant: from them to xyxy, and back.
FORMS: dict[str, tuple[Callable[..., Box], Callable[..., Box]]] = {
    "two corners": (lambda *box: box, lambda *box: box),
    "a corner, width and height": (
        lambda x, y, w, h: (x, y, x + w, y + h),
        lambda x1, y1, x2, y2: (x1, y1, x2 - x1, y2 - y1),
    ),
    "the centre, width and height": (
        lambda x, y, w, h: (x - w / 2, y - h / 2, x + w / 2, y + h / 2),
        lambda x1, y1, x2, y2: ((x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1),
    ),
}
FEWEST = 5  # boxes: fewer fit by chance when only their corner is taken for their centre
PERCENT, LARGE = 100, 200


def hints(seen: Seen) -> tuple[str, ...]:
    """A sentence for each, from annotations as they were read and a look at their images."""
    return (*_other_form(seen), *_percentages(seen), *_turns(seen), *_flat(seen))


def has_area(box: Box) -> bool:
    """Whether a box has finite corners, in their order."""
    return all(map(math.isfinite, box)) and box[2] > box[0] and box[3] > box[1]


def _boxes(seen: Seen) -> list[tuple[Box, tuple[int, int]]]:
    return [(thing.box, look.size) for picture, look in seen for thing in picture.objects]


def _fits(box: Box, size: tuple[int, int]) -> bool:
    low, high = min(box[:2]), max(edge - side for edge, side in zip(box[2:], size, strict=True))
    return has_area(box) and low >= -TOLERANCE and high <= TOLERANCE


def _other_form(seen: Seen) -> Iterator[str]:
    """Boxes that do not fit into their pictures as they are written, and would if written otherwise."""
    boxes = _boxes(seen)
    wrong = sum(not _fits(*box) for box in boxes)
    if not wrong:
        return
    form = seen[0][0].form
    as_written = FORMS[form][1]
    for other, (to_box, _) in FORMS.items():
        left = sum(not _fits(to_box(*as_written(*box)), size) for box, size in boxes)
        # Some boxes may be plainly wrong. The two forms with a size differ by half of a box, which often fits, too.
        corners = "two corners" in (form, other)
        allowed = max(1, len(boxes) // 10) if corners else 0
        enough = corners or len(boxes) >= FEWEST
        if other != form and enough and 3 * left < wrong and left <= allowed:
            yield (
                f"{wrong} of {len(boxes)} boxes do not fit into their pictures. Were their four numbers {other}, "
                f"it would be {left}; this format has {form}: look at one picture, and write the numbers anew"
            )


def _percentages(seen: Seen) -> Iterator[str]:
    boxes = _boxes(seen)
    if len(boxes) >= 2 * FEWEST and all(min(size) > LARGE and max(box) <= PERCENT for box, size in boxes):
        yield (
            f"all {len(boxes)} boxes end within {PERCENT} pixels of the corner, of pictures larger than {LARGE}: "
            "if these are percentages, write pixels"
        )


def _turns(seen: Seen) -> Iterator[str]:
    doubtful = [picture for picture, look in seen if look.in_doubt]
    if doubtful:
        yield (
            f"{len(doubtful)} pictures carry a turn of the camera (EXIF) of which no annotated size tells whether the "
            f"boxes were drawn before it or after; they are taken as drawn after it. Look at {doubtful[0].file.name}, "
            "and if its boxes are wrong, save the pictures without the turn"
        )


def _flat(seen: Seen) -> Iterator[str]:
    flat = [picture for picture, look in seen if look.flat]
    if flat:
        yield (
            f"{len(flat)} pictures have hardly more than one brightness, so that nothing can be seen in them, the "
            f"first is {flat[0].file.name}: look at them, and scale what has more than 8 bits yourself"
        )
