"""Exercises of notebook 22: VOC's corners, boxes back in their picture, and the annotation behind a loss."""

import math
from collections.abc import Sequence
from random import Random
from typing import Any

from course.learn.exercise import Case, Exercise, Mistake

Box = tuple[float, float, float, float]


def voc_box(box: Box) -> Box:
    xmin, ymin, xmax, ymax = box
    return xmin - 1, ymin - 1, xmax, ymax


def _as_written(box: Box) -> Box:
    return box


def _all_minus_one(box: Box) -> Box:
    xmin, ymin, xmax, ymax = box
    return xmin - 1, ymin - 1, xmax - 1, ymax - 1


def _voc_cases(random: Random) -> Sequence[Case]:
    drawn = []
    for _ in range(20):
        x, y = random.randint(1, 300), random.randint(1, 200)
        drawn.append((x, y, x + random.randint(0, 200), y + random.randint(0, 150)))
    return [Case((box,)) for box in [(1, 1, 500, 375), (1, 1, 1, 1), (48, 240, 195, 371), *drawn]]


def box_in_picture(box: Box, canvas: tuple[int, int], picture: tuple[int, int]) -> Box:
    scale = min(canvas[0] / picture[0], canvas[1] / picture[1])
    return tuple(edge / scale for edge in box)  # type: ignore[return-value]


def _longer_sides(box: Box, canvas: tuple[int, int], picture: tuple[int, int]) -> Box:
    scale = max(canvas) / max(picture)
    return tuple(edge / scale for edge in box)  # type: ignore[return-value]


def _sides_swapped(box: Box, canvas: tuple[int, int], picture: tuple[int, int]) -> Box:
    return box_in_picture(box, canvas, (picture[1], picture[0]))


def _picture_cases(random: Random) -> Sequence[Case]:
    fixed = [((10.0, 20.0, 110.0, 80.0), (320, 320), (480, 640)), ((0.0, 0.0, 96.0, 128.0), (128, 128), (400, 300))]
    cases = [Case(arguments) for arguments in fixed]
    for _ in range(20):
        height, width = random.randint(50, 900), random.randint(50, 900)
        canvas = (32 * random.randint(2, 13), 32 * random.randint(2, 13))
        scale = min(canvas[0] / height, canvas[1] / width)
        x1, y1 = random.uniform(0, 0.5) * width * scale, random.uniform(0, 0.5) * height * scale
        box = (x1, y1, x1 + 0.4 * width * scale, y1 + 0.4 * height * scale)
        cases.append(Case((box, canvas, (height, width))))
    return cases


def culprits(sums: dict[str, list[float]], image_ids: list[int]) -> list[int]:
    return [one for k, one in enumerate(image_ids) if not all(math.isfinite(column[k]) for column in sums.values())]


def _positions(sums: dict[str, list[float]], image_ids: list[int]) -> list[int]:
    return [image_ids.index(one) for one in culprits(sums, image_ids)]


def _only_nan(sums: dict[str, list[float]], image_ids: list[int]) -> list[int]:
    return [one for k, one in enumerate(image_ids) if any(math.isnan(column[k]) for column in sums.values())]


def _first_loss_only(sums: dict[str, list[float]], image_ids: list[int]) -> list[int]:
    return culprits({"first": next(iter(sums.values()))}, image_ids)


def _culprit_cases(random: Random) -> Sequence[Case]:
    nan, inf = math.nan, math.inf
    fixed = [
        ({"rpn_box": [0.5, nan, 0.1], "head_box": [0.2, 0.3, inf]}, [41, 7, 12]),
        ({"rpn_box": [0.5, 0.4], "head_box": [0.2, 0.3]}, [8, 9]),
        ({"rpn_box": [0.5, -inf, 0.4], "head_box": [nan, nan, 0.3]}, [3, 4, 5]),
    ]
    cases = [Case(arguments) for arguments in fixed]
    for _ in range(20):
        ids = random.sample(range(100, 999), 6)
        sums = {
            name: [random.choice([0.3, 1.2, 0.0, 2.5, nan, inf]) for _ in ids]
            for name in ("rpn_objectness", "rpn_box", "head_box")
        }
        cases.append(Case((sums, ids)))
    return cases


def _close(given: Any, expected: Any) -> bool:
    return len(given) == len(expected) and all(
        math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6) for a, b in zip(given, expected, strict=True)
    )


EXERCISES = (
    Exercise(
        key="22.voc_box",
        task="VOC's (xmin, ymin, xmax, ymax), whole pixels counted from 1 with both ends inside, as corners x1, y1, "
        "x2, y2 whose width is x2 - x1.",
        reference=voc_box,
        cases=_voc_cases,
        agree=_close,
        hints=(
            "How wide is the box from pixel 1 to pixel 1?",
            "It is one pixel wide, and begins where the picture begins: 0 to 1.",
            "The left and upper edge move by one, the right and lower edge stay: (xmin - 1, ymin - 1, xmax, ymax).",
        ),
        mistakes=(
            Mistake(
                "taken as written",
                "you took the numbers as they stand: a box from pixel 1 to pixel 1 has no width then, and none reaches "
                "the left edge of its picture.",
                "endernewton/tf-faster-rcnn issue 107, 2017: the advice is to take the - 1 away; right for the asker, "
                "whose file counted from 0",
                answers=(_as_written,),
            ),
            Mistake(
                "one off everywhere",
                "you subtracted one from all four. The pixels now count from 0, with both ends inside still: every "
                "width is one too small, unless the + 1 is kept in all code that follows.",
                "the reader of py-faster-rcnn, 2015, quoted in endernewton/tf-faster-rcnn issue 107, 2017",
                answers=(_all_minus_one,),
            ),
        ),
    ),
    Exercise(
        key="22.box_in_picture",
        task="A box on a canvas (height, width) where the picture (height, width), shrunk or enlarged in its own "
        "proportions, stands at the top left: where is the box in the picture?",
        reference=box_in_picture,
        cases=_picture_cases,
        agree=_close,
        hints=(
            "By one number for both directions: proportions are kept.",
            "The picture was enlarged until its first side was full: by the smaller of canvas / picture.",
            "Divide all four corners by min(canvas[0] / picture[0], canvas[1] / picture[1]).",
        ),
        mistakes=(
            Mistake(
                "longer side by longer side",
                "you divided the longer sides by each other. That is right for a square canvas, and wrong where the "
                "shorter side fills up first.",
                "ultralytics/yolov3 issue 1459, 2020: boxes shift when height and width differ",
                answers=(_longer_sides,),
            ),
            Mistake(
                "height and width swapped",
                "you took (width, height) for (height, width): a tensor has its height first, Pillow's `size` last.",
                "endernewton/tf-faster-rcnn issue 107, 2017: annotations with width and height the wrong way round",
                answers=(_sides_swapped,),
            ),
        ),
    ),
    Exercise(
        key="22.culprits",
        task="Loss sums of a batch, name to one number an image, and the images' ids: the ids of the images of which "
        "some loss is not finite, in order.",
        reference=culprits,
        cases=_culprit_cases,
        hints=(
            "A sum per image can be asked image by image.",
            "Both `nan` and `inf` are not finite; `math.isfinite` knows.",
            "Keep image_ids[k] when any of the columns is not finite at k.",
        ),
        mistakes=(
            Mistake(
                "positions in the batch",
                "you named the positions in the batch. The loader shuffles: what leads to a file is the id.",
                "pytorch/vision issue 2740, 2020: 'for target at index 0' is all that the error says",
                answers=(_positions,),
            ),
            Mistake(
                "infinite is not NaN",
                "you looked for NaN only. The logarithm of a width of 0 is infinite first, and NaN one step later.",
                "pytorch/vision issue 2240, 2020: a loss that is nan only 'after a few iterations'",
                answers=(_only_nan,),
            ),
            Mistake(
                "the first loss only",
                "you looked at the first loss only; a broken box shows in the losses of boxes.",
                "jwyang/faster-rcnn.pytorch issue 193, 2018, where rpn_box alone is nan",
                answers=(_first_loss_only,),
            ),
        ),
    ),
)
