"""A list of words: "other size" and "empty" for the picture, then for each object, in order, the first that holds of
"unknown class", "no area", "outside" and "twice"; nothing for a sound object.
"""

import math
from collections.abc import Collection, Sequence
from random import Random

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb22.cases import Box, Objects

hints = (
    "Begin with `audit`. Which comparisons are false for nan, and what runs when there are no objects?",
    "Ask for what is right: `x1 < x2` is false for nan, so `not x1 < x2` finds it; `math.isfinite` finds inf.",
    "`annotated` may be None, or have a 0 in it; then it says nothing. One pixel beyond an edge is allowed.",
)


Size = tuple[int, int]


def faults(annotated: Size | None, image: Size, objects: Objects, class_names: Collection[str]) -> list[str]:
    """What is wrong with an annotation, in words; sizes are (width, height), boxes are edges x1, y1, x2, y2."""
    found = []
    if annotated is not None and min(annotated) > 0 and annotated != image:
        found.append("other size")
    if not objects:
        found.append("empty")
    width, height = image
    for number, (name, (x1, y1, x2, y2)) in enumerate(objects):
        if name not in class_names:
            found.append("unknown class")
        elif not (all(map(math.isfinite, (x1, y1, x2, y2))) and x1 < x2 and y1 < y2):
            found.append("no area")
        elif min(x1, y1) < -1 or x2 > width + 1 or y2 > height + 1:
            found.append("outside")
        elif (name, (x1, y1, x2, y2)) in objects[:number]:
            found.append("twice")
    return found


def cases(random: Random) -> Sequence[Case]:
    cat, dog = ("cat", (10.0, 20.0, 50.0, 60.0)), ("dog", (100.0, 30.0, 180.0, 70.0))
    nan, size, known = math.nan, (200, 100), ("cat", "dog")
    fixed: list[tuple[Size | None, Size, Objects]] = [
        (size, size, [cat, dog]),
        ((0, 0), size, [cat]),
        ((0, 100), size, [cat]),
        (None, size, [dog]),
        ((100, 200), size, [cat]),
        ((100, 200), size, []),
        ((200, 0), size, [cat]),
        ((0, 50), size, [cat]),
        (size, size, []),
        (size, size, [("cat", (10.0, nan, 50.0, 60.0))]),
        (size, size, [("cat", (nan, nan, nan, nan)), dog]),
        (size, size, [("cat", (10.0, 20.0, 10.0, 60.0)), ("dog", (50.0, 20.0, 10.0, 60.0))]),
        (size, size, [("cat", (-1.0, 20.0, 50.0, 101.0)), ("cat", (10.0, -1.0, 201.0, 60.0))]),
        (size, size, [("cat", (-1.5, 20.0, 50.0, 60.0)), ("cat", (10.0, 20.0, 50.0, 101.5))]),
        (size, size, [("cat", (10.0, 20.0, 900.0, 60.0))] * 2),
        (size, size, [cat, dog, ("dog", cat[1]), cat, ("cat", dog[1])]),
        (size, size, [("cat", (10.0, 20.0, 900.0, 60.0)), ("dgo", (1.0, 2.0, 30.0, 40.0))]),
        (size, size, [("cat", (10.0, 20.0, math.inf, 60.0)), cat, cat]),
    ]
    cases = [Case((annotated, image, objects, known)) for annotated, image, objects in fixed]
    for _ in range(12):
        width, height = random.randint(60, 300), random.randint(60, 300)
        objects = [_drawn(random, width, height) for _ in range(random.randint(0, 4))]
        annotated = random.choice([(width, height), (width, height), (0, 0), None, (height, width)])
        cases.append(Case((annotated, (width, height), objects, known)))
    return cases


def _drawn(random: Random, width: int, height: int) -> tuple[str, Box]:
    x1, y1 = random.randint(0, width // 2), random.randint(0, height // 2)
    x2, y2 = random.randint(x1, width), random.randint(y1, height)
    edges = [float(x1), float(y1), float(x2), float(y2)]
    if random.random() < 0.3:
        edges[random.randrange(4)] = random.choice([math.nan, -1.0, -40.0, 900.0])
    return random.choice(["cat", "dog", "dog", "cow"]), (edges[0], edges[1], edges[2], edges[3])


@wrong
def nan_passes(
    annotated: Size | None, image: Size, objects: Objects, class_names: Collection[str], slack: float = 1
) -> list[str]:
    """here a box with a coordinate that is nan passes: every comparison with nan is false, `x2 <= x1` as well as `x2 >
    width`. Ask `math.isfinite`, or for `not x1 < x2`.

    Source: kornia/kornia issue 4238, 2026: nan passes a check that rejects what is too large
    """
    # As `audit` of the notebook compares, with all other words: a comparison with nan is false.
    found = ["other size"] if annotated is not None and min(annotated) > 0 and annotated != image else []
    found += [] if objects else ["empty"]
    for number, (name, (x1, y1, x2, y2)) in enumerate(objects):
        if name not in class_names:
            found.append("unknown class")
        elif x2 <= x1 or y2 <= y1:
            found.append("no area")
        elif x1 < -slack or y1 < -slack or x2 > image[0] + slack or y2 > image[1] + slack:
            found.append("outside")
        elif (name, (x1, y1, x2, y2)) in objects[:number]:
            found.append("twice")
    return found


@also(nan_passes)
def the_audit_and_empty(
    annotated: Size | None, image: Size, objects: Objects, class_names: Collection[str]
) -> list[str]:
    """Word for word as `audit` of the notebook, with a line for pictures without objects."""
    found = ["other size"] if annotated != image else []
    found += [] if objects else ["empty"]
    for name, (x1, y1, x2, y2) in objects:
        found += ["unknown class"] if name not in class_names else []
        found += ["no area"] if x2 <= x1 or y2 <= y1 else []
        found += ["outside"] if x1 < 0 or y1 < 0 or x2 > image[0] or y2 > image[1] else []
    return found


@wrong
def inf_is_not_nan(annotated: Size | None, image: Size, objects: Objects, class_names: Collection[str]) -> list[str]:
    """this is what `x1 < x2` gives, which finds nan and lets inf pass: a box that ends at inf has its edges in the
    right order. It is not a finite number either; ask `math.isfinite`.

    Source: roboflow/supervision issue 2502, 2026: boxes with nan or inf are accepted
    """
    finite = [(name, tuple(min(edge, 1e9) for edge in box)) for name, box in objects]
    return faults(annotated, image, [(name, (a, b, c, d)) for name, (a, b, c, d) in finite], class_names)


@wrong
def empty_passes(annotated: Size | None, image: Size, objects: Objects, class_names: Collection[str]) -> list[str]:
    """here nothing is said of a picture without objects. A loop over no objects finds no fault, but perhaps nobody has
    annotated this picture yet.

    Source: open-edge-platform/geti issue 4891, 2025: empty on purpose, or not annotated yet?
    """
    return [word for word in faults(annotated, image, objects, class_names) if word != "empty"]


@wrong
def a_size_of_0_x_0(annotated: Size | None, image: Size, objects: Objects, class_names: Collection[str]) -> list[str]:
    """here None, or a size with a 0 in it, is taken for the size of a picture. Some tools write a 0 when they do not
    know it; the boxes may still be right.

    Source: HumanSignal/labelImg issue 59, 2017: width and height are both zero in the XML file
    """
    found = faults(None, image, objects, class_names)
    return found if annotated in (None, image) else ["other size", *found]


@also(a_size_of_0_x_0)
def none_is_a_size(annotated: Size | None, image: Size, objects: Objects, class_names: Collection[str]) -> list[str]:
    found = faults(None, image, objects, class_names)
    return found if annotated == image else ["other size", *found]


@wrong
def to_the_pixel(annotated: Size | None, image: Size, objects: Objects, class_names: Collection[str]) -> list[str]:
    """here boxes are reported that reach out by one pixel. Files that count from 0 are read as if they counted from 1,
    so a pixel too much is common, and hundreds of such lines hide the real faults.

    Source: umautobots/vod-converter issue 26, 2019: a box over the full width begins at -1
    """
    finite = faults(annotated, image, objects, class_names)
    if any(not math.isfinite(edge) for _, box in objects for edge in box):
        return finite
    return nan_passes(annotated, image, objects, class_names, slack=0)


@wrong
def the_first_fault_alone(
    annotated: Size | None, image: Size, objects: Objects, class_names: Collection[str]
) -> list[str]:
    """this is the first fault alone. Whoever mends it and runs the program again then meets the next one.

    Source: sovit-123/fasterrcnn-pytorch-training-pipeline issue 44, 2023: 'Got another error'
    """
    return faults(annotated, image, objects, class_names)[:1]


@wrong
def twice_by_the_box_alone(
    annotated: Size | None, image: Size, objects: Objects, class_names: Collection[str]
) -> list[str]:
    """here an object counts as listed twice because its box is, whatever its name. Two objects of different classes may
    have the same box.
    """
    found = faults(annotated, image, [], class_names)[:-1]
    for number, thing in enumerate(objects):
        word = faults(None, image, [thing], class_names)
        found += word or ["twice"] * (thing[1] in [box for _, box in objects[:number]])
    return found if objects else [*found, "empty"]


@wrong
def height_first(annotated: Size | None, image: Size, objects: Objects, class_names: Collection[str]) -> list[str]:
    """here x is compared with the height and y with the width. Sizes are (width, height) here, as Pillow has them; the
    shape of a tensor has the height first.

    Source: facebookresearch/detectron2 issue 1861, 2020: height and width values are swapped
    """
    turned = None if annotated is None else (annotated[1], annotated[0])
    return faults(turned, (image[1], image[0]), objects, class_names)
