"""A test: `read(text)` takes the XML of a VOC annotation and returns its objects, (name, (x1, y1, x2, y2)) each. Raise
an AssertionError unless the corners are right: VOC counts pixels from 1, both ends inside.
"""

from collections.abc import Callable, Sequence
from random import Random
from xml.etree import ElementTree

from course.kit.learn.exercise import Case, Program, Trial
from course.kit.learn.puzzle import wrong
from course.lessons.nb22.cases import Objects

hints = (
    "Which corners has the box from pixel 1 to pixel 1? It is one pixel wide and begins at the edge: 0 to 1.",
    "The wrong readers differ in objects, in the order of edges, in the corner and in the size: try them all.",
    "Two objects, one with ymin before xmin; xmin 11, ymin 22, xmax 33, ymax 55 becomes (10, 21, 33, 55).",
)


Reader = Callable[[str], Objects]
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


def cases(random: Random) -> Sequence[Case]:
    return [Trial((program,)) for program in random.sample(_PROGRAMS, len(_PROGRAMS))]


@wrong
def the_usual_order(read: Reader) -> None:
    """this is how a test ends in whose annotation the edges are in the usual order, so a reader passes that takes the
    first for xmin and the second for ymin. XML promises no order, and some tools write ymin first.

    Source: sglvladi/TensorFlowObjectDetectionTutorial pull request 67, 2020; datitran/raccoon_dataset pull request 74,
    2018
    """
    assert [tuple(box) for _, box in read(_annotation(ONE, ONE))] == [(10, 21, 33, 55)] * 2


@wrong
def one_object_in_the_usual_order(read: Reader) -> None:
    """this is how a test ends whose annotation has one object, with its edges in the usual order. Two wrong readers
    pass: one that returns the first object alone, and one that takes the edges in the order in which they come.

    Source: edges in a different order: datitran/raccoon_dataset pull request 74, 2018
    """
    ((_, box),) = read(_annotation(ONE))
    assert tuple(box) == (10, 21, 33, 55)


@wrong
def one_object(read: Reader) -> None:
    """this is how a test ends whose annotation has one object. A reader that returns the first alone passes.

    Source: a reader with `find` instead of `findall`: tensorflow/models issue 1881, 2020
    """
    ((_, box),) = read(_annotation(OTHER_WAY))
    assert tuple(box) == (59, 6, 94, 41)


@wrong
def sizes_alone(read: Reader) -> None:
    """this is how a test ends that compares widths and heights alone. A box of the right size may be a pixel beside its
    place.

    Source: a + 1 at the right and lower edges: chenyuntc/simple-faster-rcnn-pytorch issue 176, 2020
    """
    sizes = [(x2 - x1, y2 - y1) for _, (x1, y1, x2, y2) in read(_annotation(ONE, OTHER_WAY))]
    assert sizes == [(23, 34), (35, 35)]


@wrong
def taken_as_written(read: Reader) -> None:
    """this test wants the numbers as they are written, so it fails a right reader: a box from pixel 1 to pixel 1 would
    have no width, and none would reach the left edge of its picture.

    Source: endernewton/tf-faster-rcnn issue 107, 2017: the advice is to take the - 1 away; right for the asker, whose
    file counted from 0
    """
    assert [tuple(box) for _, box in read(_annotation(ONE, OTHER_WAY))] == [(11, 22, 33, 55), (60, 7, 94, 41)]


@wrong
def one_off_everywhere(read: Reader) -> None:
    """this test wants one less at all four edges, so it fails a right reader: the pixels then count from 0, with both
    ends inside still, and every width is one too small.

    Source: shiyemin/voc2coco issue 1, 2018, asks whether xmax should be subtracted from, too
    """
    assert [tuple(box) for _, box in read(_annotation(ONE, OTHER_WAY))] == [(10, 21, 32, 54), (59, 6, 93, 40)]


@wrong
def never_fails(read: Reader) -> bool:
    """this test lets every reader pass, as one does that never raises anything. A test that *returns* False has passed;
    write `assert`.

    Source: pytest warns about tests that return something since version 7.2, 2022
    """
    return [tuple(box) for _, box in read(_annotation(ONE, OTHER_WAY))] == [(10, 21, 33, 55), (59, 6, 94, 41)]
