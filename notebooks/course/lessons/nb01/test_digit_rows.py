"""Rows of digits: every batch has its own line, borders name GPUs, and the words name what differs."""

import re
import xml.etree.ElementTree as ElementTree

import pytest
import torch

from course.kit import figures
from course.kit.figures.palette import gpu_colour
from course.lessons.nb01.digit_rows import digit_rows

SVG = "{http://www.w3.org/2000/svg}"


def test_borders_and_words_say_where_each_picture_comes_from():
    digits = torch.tensor(figures.cast())
    changed = digits.clone()
    changed[3:] = 0
    figure = digit_rows({"in": digits, "out": changed[:, None]}, "In and out", gpus={"out": [3, 7]})
    edges = re.findall(r'stroke="(#\w+)" stroke-width="2"', figure.markup)
    assert [edges.count(gpu_colour(gpu)) for gpu in (0, 1, 2)] == [3, 7, 0]
    assert "in: 10 pictures. out: 10 pictures, 0 to 2 from cuda:0, 3 to 9 from cuda:1" in figure.description
    assert figure.description.endswith("different from the first line: 3, 4, 5, 6, 7, 8, 9.")


@pytest.mark.parametrize("rows", [1, 10, 20, 40])
def test_everything_stays_inside(rows):
    batch = torch.tensor(figures.cast()).repeat(4, 1, 1)[:rows]
    figure = digit_rows({"a label of some length": batch}, "A title that is longer than one picture is wide")
    root = ElementTree.fromstring(figure.markup)
    width, height = float(root.get("width")), float(root.get("height"))
    for node in root.iter(SVG + "text"):
        assert 0 < float(node.get("y")) < height and 0 < float(node.get("x")) < width
    right = max(float(node.get("x")) + float(node.get("width")) for node in root.iter(SVG + "rect"))
    assert right <= width <= 960


def test_what_cannot_be_drawn_is_refused():
    digits = torch.tensor(figures.cast())
    with pytest.raises(ValueError, match="`batches` is empty"):
        digit_rows({"in": digits[:0]}, "Nothing")
    with pytest.raises(ValueError, match="must count 10 pictures, got \\[5, 4\\], which are 9"):
        digit_rows({"in": digits}, "Wrong", gpus={"in": [5, 4]})
