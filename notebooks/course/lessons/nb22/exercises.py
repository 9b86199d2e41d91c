"""Exercises of notebook 22: the picture behind a loss, a checker of annotations, and the test for a reader of VOC."""

import math
from collections.abc import Callable, Collection, Sequence
from random import Random
from xml.etree import ElementTree

from course.kit.learn.exercise import Case, Exercise, Mistake, Program, Trial

Box = tuple[float, float, float, float]
Size = tuple[int, int]
Objects = Sequence[tuple[str, Box]]
Reader = Callable[[str], Objects]


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
        ({"rpn_box": [0.5, 1e30], "head_box": [0.2, 0.3]}, [8, 9]),
        ({"rpn_box": [0.5, -inf, 0.4], "head_box": [nan, 0.2, 0.3]}, [3, 4, 5]),
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


def _by_comparisons(
    annotated: Size | None, image: Size, objects: Objects, class_names: Collection[str], slack: float = 1
) -> list[str]:
    """As `audit` of the notebook compares, with all other words: a comparison with nan is false."""
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


def _without_inf(annotated: Size | None, image: Size, objects: Objects, class_names: Collection[str]) -> list[str]:
    finite = [(name, tuple(min(edge, 1e9) for edge in box)) for name, box in objects]
    return faults(annotated, image, [(name, (a, b, c, d)) for name, (a, b, c, d) in finite], class_names)


def _nobody_home(annotated: Size | None, image: Size, objects: Objects, class_names: Collection[str]) -> list[str]:
    return [word for word in faults(annotated, image, objects, class_names) if word != "empty"]


def _zero_is_a_size(annotated: Size | None, image: Size, objects: Objects, class_names: Collection[str]) -> list[str]:
    found = faults(None, image, objects, class_names)
    return found if annotated in (None, image) else ["other size", *found]


def _none_is_a_size(annotated: Size | None, image: Size, objects: Objects, class_names: Collection[str]) -> list[str]:
    found = faults(None, image, objects, class_names)
    return found if annotated == image else ["other size", *found]


def _to_the_pixel(annotated: Size | None, image: Size, objects: Objects, class_names: Collection[str]) -> list[str]:
    finite = faults(annotated, image, objects, class_names)
    if any(not math.isfinite(edge) for _, box in objects for edge in box):
        return finite
    return _by_comparisons(annotated, image, objects, class_names, slack=0)


def _first_alone(annotated: Size | None, image: Size, objects: Objects, class_names: Collection[str]) -> list[str]:
    return faults(annotated, image, objects, class_names)[:1]


def _twice_by_box(annotated: Size | None, image: Size, objects: Objects, class_names: Collection[str]) -> list[str]:
    found = faults(annotated, image, [], class_names)[:-1]
    for number, thing in enumerate(objects):
        word = faults(None, image, [thing], class_names)
        found += word or ["twice"] * (thing[1] in [box for _, box in objects[:number]])
    return found if objects else [*found, "empty"]


def _height_first(annotated: Size | None, image: Size, objects: Objects, class_names: Collection[str]) -> list[str]:
    turned = None if annotated is None else (annotated[1], annotated[0])
    return faults(turned, (image[1], image[0]), objects, class_names)


def _fault_cases(random: Random) -> Sequence[Case]:
    cat, dog = ("cat", (10.0, 20.0, 50.0, 60.0)), ("dog", (100.0, 30.0, 180.0, 70.0))
    nan, size, known = math.nan, (200, 100), ("cat", "dog")
    fixed: list[tuple[Size | None, Size, Objects]] = [
        (size, size, [cat, dog]),
        ((0, 0), size, [cat]),
        ((0, 100), size, [cat]),
        (None, size, [dog]),
        ((100, 200), size, [cat]),
        (size, size, []),
        (size, size, [("cat", (10.0, nan, 50.0, 60.0))]),
        (size, size, [("cat", (nan, nan, nan, nan)), dog]),
        (size, size, [("cat", (10.0, 20.0, 10.0, 60.0)), ("dog", (50.0, 20.0, 10.0, 60.0))]),
        (size, size, [("cat", (-1.0, 20.0, 50.0, 101.0)), ("cat", (10.0, -1.0, 201.0, 60.0))]),
        (size, size, [("cat", (-1.5, 20.0, 50.0, 60.0)), ("cat", (10.0, 20.0, 50.0, 101.5))]),
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


EDGES = ("xmin", "ymin", "xmax", "ymax")


def read_voc(text: str) -> Objects:
    """The objects of an annotation: names, and corners x1, y1, x2, y2 whose width is x2 - x1."""
    found = []
    for thing in ElementTree.fromstring(text).iter("object"):
        xmin, ymin, xmax, ymax = (float(thing.findtext(f"bndbox/{edge}", "nan")) for edge in EDGES)
        found.append((thing.findtext("name", ""), (xmin - 1, ymin - 1, xmax, ymax)))
    return found


def _in_whole_pixels(text: str) -> Objects:
    """The same in whole numbers, each edge looked for by its name."""
    found = []
    for thing in ElementTree.fromstring(text).findall("object"):
        edges = {edge.tag: int(edge.text or 0) for edge in thing.findall("bndbox/*")}
        found.append((thing.findtext("name", ""), (edges["xmin"] - 1, edges["ymin"] - 1, edges["xmax"], edges["ymax"])))
    return found


def _as_written(text: str) -> Objects:
    return [(name, (x1 + 1, y1 + 1, x2, y2)) for name, (x1, y1, x2, y2) in read_voc(text)]


def _minus_one(text: str) -> Objects:
    return [(name, (x1, y1, x2 - 1, y2 - 1)) for name, (x1, y1, x2, y2) in read_voc(text)]


def _plus_one(text: str) -> Objects:
    return [(name, (x1 + 1, y1 + 1, x2 + 1, y2 + 1)) for name, (x1, y1, x2, y2) in read_voc(text)]


def _by_position(text: str) -> Objects:
    found = []
    for thing in ElementTree.fromstring(text).iter("object"):
        first, second, third, fourth = (float(edge.text or 0) for edge in thing.findall("bndbox/*"))
        found.append((thing.findtext("name", ""), (first - 1, second - 1, third, fourth)))
    return found


def _width_and_height(text: str) -> Objects:
    return [(name, (x1, y1, x2 - x1, y2 - y1)) for name, (x1, y1, x2, y2) in read_voc(text)]


def _first_object(text: str) -> Objects:
    return read_voc(text)[:1]


_PROGRAMS = (
    Program("a reader that looks for each edge by its name", read_voc),
    Program("a reader that does the same in whole numbers", _in_whole_pixels),
    Program("a reader that takes the numbers as they are written", _as_written),
    Program("a reader that subtracts one from all four edges", _minus_one),
    Program("a reader that adds one to the right and lower edges", _plus_one),
    Program("a reader that takes the edges in the order in which they come", _by_position),
    Program("a reader that returns width and height for the right and lower edges", _width_and_height),
    Program("a reader that reads the first object alone", _first_object),
)


def check_reader(read: Reader) -> None:
    """Two objects, the second with its edges in a different order; no two of the eight numbers are the same."""
    first = "<xmin>11</xmin><ymin>22</ymin><xmax>33</xmax><ymax>55</ymax>"
    second = "<ymin>7</ymin><xmin>60</xmin><ymax>41</ymax><xmax>94</xmax>"
    text = "".join(
        f"<object><name>{name}</name><bndbox>{edges}</bndbox></object>" for name, edges in [("8", first), ("3", second)]
    )
    found = [(name, tuple(box)) for name, box in read(f"<annotation>{text}</annotation>")]
    assert found == [("8", (10, 21, 33, 55)), ("3", (59, 6, 94, 41))]


def _annotation(*boxes: str) -> str:
    things = "".join(f"<object><name>8</name><bndbox>{edges}</bndbox></object>" for edges in boxes)
    return f"<annotation>{things}</annotation>"


ONE = "<xmin>11</xmin><ymin>22</ymin><xmax>33</xmax><ymax>55</ymax>"
OTHER_WAY = "<ymin>7</ymin><xmin>60</xmin><ymax>41</ymax><xmax>94</xmax>"


def _one_as_usual(read: Reader) -> None:
    ((_, box),) = read(_annotation(ONE))
    assert tuple(box) == (10, 21, 33, 55)


def _one_object(read: Reader) -> None:
    ((_, box),) = read(_annotation(OTHER_WAY))
    assert tuple(box) == (59, 6, 94, 41)


def _usual_order(read: Reader) -> None:
    assert [tuple(box) for _, box in read(_annotation(ONE, ONE))] == [(10, 21, 33, 55)] * 2


def _sizes_alone(read: Reader) -> None:
    sizes = [(x2 - x1, y2 - y1) for _, (x1, y1, x2, y2) in read(_annotation(ONE, OTHER_WAY))]
    assert sizes == [(23, 34), (35, 35)]


def _expects_as_written(read: Reader) -> None:
    assert [tuple(box) for _, box in read(_annotation(ONE, OTHER_WAY))] == [(11, 22, 33, 55), (60, 7, 94, 41)]


def _expects_minus_one(read: Reader) -> None:
    assert [tuple(box) for _, box in read(_annotation(ONE, OTHER_WAY))] == [(10, 21, 32, 54), (59, 6, 93, 40)]


def _returns(read: Reader) -> bool:
    return [tuple(box) for _, box in read(_annotation(ONE, OTHER_WAY))] == [(10, 21, 33, 55), (59, 6, 94, 41)]


def _reader_cases(random: Random) -> Sequence[Case]:
    return [Trial((program,)) for program in random.sample(_PROGRAMS, len(_PROGRAMS))]


EXERCISES = (
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
                "these are the positions in the batch. The loader shuffles: what leads to a file is the id.",
                "pytorch/vision issue 2740, 2020: 'for target at index 0' is all that the error says",
                answers=(_positions,),
            ),
            Mistake(
                "infinite is not NaN",
                "these are the pictures with a NaN. The logarithm of a width of 0 is infinite first, and NaN one "
                "step later.",
                "pytorch/vision issue 2240, 2020: a loss that is nan only 'after a few iterations'",
                answers=(_only_nan,),
            ),
            Mistake(
                "the first loss only",
                "these are the pictures in which the first loss is not finite; a broken box shows in the losses of "
                "boxes.",
                "jwyang/faster-rcnn.pytorch issue 193, 2018, where rpn_box alone is nan",
                answers=(_first_loss_only,),
            ),
        ),
    ),
    Exercise(
        key="22.faults",
        task='A list of words: "other size" and "empty" for the picture, then for each object, in order, the first '
        'that holds of "unknown class", "no area", "outside" and "twice"; nothing for a sound object.',
        reference=faults,
        cases=_fault_cases,
        hints=(
            "Begin with `audit`. Which comparisons are false for nan, and what runs when there are no objects?",
            "Ask for what is right: `x1 < x2` is false for nan, so `not x1 < x2` finds it; `math.isfinite` finds inf.",
            "`annotated` may be None, or have a 0 in it; then it says nothing. One pixel beyond an edge is allowed.",
        ),
        mistakes=(
            Mistake(
                "nan passes",
                "here a box with a coordinate that is nan passes: every comparison with nan is false, `x2 <= x1` as "
                "well as `x2 > width`. Ask `math.isfinite`, or for `not x1 < x2`.",
                "kornia/kornia issue 4238, 2026: nan passes a check that rejects what is too large",
                answers=(_by_comparisons,),
            ),
            Mistake(
                "inf is not nan",
                "this is what `x1 < x2` gives, which finds nan and lets inf pass: a box that ends at inf has its "
                "edges in the right order. It is not a finite number either; ask `math.isfinite`.",
                "roboflow/supervision issue 2502, 2026: boxes with nan or inf are accepted",
                answers=(_without_inf,),
            ),
            Mistake(
                "empty passes",
                "here nothing is said of a picture without objects. A loop over no objects finds no fault, but "
                "perhaps nobody has annotated this picture yet.",
                "open-edge-platform/geti issue 4891, 2025: empty on purpose, or not annotated yet?",
                answers=(_nobody_home,),
            ),
            Mistake(
                "a size of 0 x 0",
                "here None, or a size with a 0 in it, is taken for the size of a picture. Some tools write a 0 when "
                "they do not know it; the boxes may still be right.",
                "HumanSignal/labelImg issue 59, 2017: width and height are both zero in the XML file",
                answers=(_zero_is_a_size, _none_is_a_size),
            ),
            Mistake(
                "to the pixel",
                "here boxes are reported that reach out by one pixel. Files that count from 0 are read as if they "
                "counted from 1, so a pixel too much is common, and hundreds of such lines hide the real faults.",
                "umautobots/vod-converter issue 26, 2019: a box over the full width begins at -1",
                answers=(_to_the_pixel,),
            ),
            Mistake(
                "the first fault alone",
                "this is the first fault alone. Whoever mends it and runs the program again then meets the next one.",
                "sovit-123/fasterrcnn-pytorch-training-pipeline issue 44, 2023: 'Got another error'",
                answers=(_first_alone,),
            ),
            Mistake(
                "twice by the box alone",
                "here an object counts as listed twice because its box is, whatever its name. Two objects of different "
                "classes may have the same box.",
                answers=(_twice_by_box,),
            ),
            Mistake(
                "height first",
                "here x is compared with the height and y with the width. Sizes are (width, height) here, as Pillow "
                "has them; the shape of a tensor has the height first.",
                "facebookresearch/detectron2 issue 1861, 2020: height and width values are swapped",
                answers=(_height_first,),
            ),
        ),
    ),
    Exercise(
        key="22.check_reader",
        task="A test: `read(text)` takes the XML of a VOC annotation and returns its objects, (name, (x1, y1, x2, y2)) "
        "each. Raise an AssertionError unless the corners are right: VOC counts pixels from 1, both ends inside.",
        reference=check_reader,
        cases=_reader_cases,
        hints=(
            "Which corners has the box from pixel 1 to pixel 1? It is one pixel wide and begins at the edge: 0 to 1.",
            "The wrong readers differ in objects, in the order of edges, in the corner and in the size: try them all.",
            "Two objects, one with ymin before xmin; xmin 11, ymin 22, xmax 33, ymax 55 becomes (10, 21, 33, 55).",
        ),
        mistakes=(
            Mistake(
                "the usual order",
                "this is how a test ends in whose annotation the edges are in the usual order, so a reader passes "
                "that takes the first for xmin and the second for ymin. XML promises no order, and some tools write "
                "ymin first.",
                "sglvladi/TensorFlowObjectDetectionTutorial pull request 67, 2020; datitran/raccoon_dataset pull "
                "request 74, 2018",
                answers=(_usual_order,),
            ),
            Mistake(
                "one object in the usual order",
                "this is how a test ends whose annotation has one object, with its edges in the usual order. Two "
                "wrong readers pass: one that returns the first object alone, and one that takes the edges in the "
                "order in which they come.",
                "edges in a different order: datitran/raccoon_dataset pull request 74, 2018",
                answers=(_one_as_usual,),
            ),
            Mistake(
                "one object",
                "this is how a test ends whose annotation has one object. A reader that returns the first alone "
                "passes.",
                "a reader with `find` instead of `findall`: tensorflow/models issue 1881, 2020",
                answers=(_one_object,),
            ),
            Mistake(
                "sizes alone",
                "this is how a test ends that compares widths and heights alone. A box of the right size may be a "
                "pixel beside its place.",
                "a + 1 at the right and lower edges: chenyuntc/simple-faster-rcnn-pytorch issue 176, 2020",
                answers=(_sizes_alone,),
            ),
            Mistake(
                "taken as written",
                "this test wants the numbers as they are written, so it fails a right reader: a box from pixel 1 to "
                "pixel 1 would have no width, and none would reach the left edge of its picture.",
                "endernewton/tf-faster-rcnn issue 107, 2017: the advice is to take the - 1 away; right for the asker, "
                "whose file counted from 0",
                answers=(_expects_as_written,),
            ),
            Mistake(
                "one off everywhere",
                "this test wants one less at all four edges, so it fails a right reader: the pixels then count from "
                "0, with both ends inside still, and every width is one too small.",
                "shiyemin/voc2coco issue 1, 2018, asks whether xmax should be subtracted from, too",
                answers=(_expects_minus_one,),
            ),
            Mistake(
                "never fails",
                "this test lets every reader pass, as one does that never raises anything. A test that *returns* "
                "False has passed; write `assert`.",
                "pytest warns about tests that return something since version 7.2, 2022",
                answers=(_returns,),
            ),
        ),
    ),
)
