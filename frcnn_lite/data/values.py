"""Numbers, flags and ids as files of annotations write them: one rule for COCO, VOC and YOLO.

Every function raises ValueError that says which value is wrong and what it must be. `name`: what the file calls it.
"""

import math
from collections.abc import Sequence
from reprlib import repr as brief
from typing import Any

FLAGS = {"": False, "0": False, "false": False, "no": False, "1": True, "true": True, "yes": True}
SLACK = 0.001  # a part of a picture this far outside 0..1 was rounded


def number(value: Any, name: str) -> float:
    """A number or the text of one; too many digits are infinite, and `nan` is left for who knows what it is for."""
    try:
        if isinstance(value, bool) or (isinstance(value, str) and ("_" in value or not value.isascii())):
            raise ValueError("float() takes more than the formats do")
        return float(value)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        raise ValueError(f"{name} is not a number: {brief(value)}") from None


def sides(width: Any, height: Any) -> tuple[int, int] | None:
    """The size of a picture in pixels, None where a side is not written or 0, as by tools that do not know it."""
    found = [number(value, name) for value, name in ((width, "width"), (height, "height")) if value not in (None, "")]
    if wrong := [side for side in found if not side.is_integer()]:
        raise ValueError(f"the size of the picture must be whole numbers of pixels, got {wrong[0]:g}")
    return (int(found[0]), int(found[1])) if len(found) == 2 and min(found) > 0 else None


def flag(value: Any, name: str) -> bool:
    """0 or 1, also as a text or as a word: "0" and "false" are not true."""
    word = "" if value is None else str(value).strip().lower().removesuffix(".0")
    if word not in FLAGS:
        raise ValueError(f"{name} must be 0 or 1, got {brief(value)}")
    return FLAGS[word]


def identity(value: Any, name: str) -> Any:
    """The name by which an entry is found: a whole number or a text."""
    if isinstance(value, bool) or not (isinstance(value, int | str) or (isinstance(value, float) and value % 1 == 0)):
        raise ValueError(f"{name} must be a whole number or a text, got {brief(value)}")
    return value


def refuse_parts(box: Sequence[float]) -> None:
    """For the four numbers of a box that are meant as pixels, and are parts of the picture instead."""
    if max(box) > 0 and all(-SLACK <= n <= 1 + SLACK for n in box):
        numbers = " ".join(f"{n:g}" for n in box)
        raise ValueError(f"the box {numbers} is within 0..1: boxes are in pixels here, not parts of the picture")
