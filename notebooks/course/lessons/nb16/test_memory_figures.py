"""The figures of notebook 16: cells with a gradient, and one place that two GPUs share."""

import xml.etree.ElementTree as ElementTree

import pytest
import torch

from course.lessons.nb16.fed_cells import RIGHT, WRONG, fed_cells
from course.lessons.nb16.shared_slot import Use, shared_slot

SVG = "{http://www.w3.org/2000/svg}"


def strokes(figure, colour):
    return [r for r in ElementTree.fromstring(figure.markup).iter(SVG + "rect") if r.get("stroke") == colour]


def at(*cells):
    gradient = torch.zeros(1, 1, 3, 4)
    for i, j in cells:
        gradient[0, 0, i, j] = 0.5
    return gradient


def test_cells_are_compared_with_those_of_the_first_row():
    picture = torch.arange(12.0).view(1, 1, 3, 4)
    rows = {"right": [at((0, 1), (2, 3))], "found": [at((0, 1), (1, 0))]}
    figure = fed_cells([picture], rows, "Where it goes")
    assert len(strokes(figure, RIGHT)) == 3 and len(strokes(figure, WRONG)) == 1
    assert figure.description == (
        "right: map 1: gradient at (0, 1), (2, 3). found: map 1: gradient at (0, 1), (1, 0), 1 of them wrong."
    )


def test_a_map_of_zeros_and_a_gradient_of_zeros():
    figure = fed_cells([torch.zeros(1, 1, 2, 2)], {"none": [torch.zeros(1, 1, 2, 2)]}, "Nothing")
    assert "gradient at no cell" in figure.description


@pytest.mark.parametrize("rows", [{}, {"right": []}, {"right": [at(), at()]}])
def test_every_row_has_a_gradient_for_each_map(rows):
    with pytest.raises(ValueError, match="`gradients` must have rows of one gradient for each map"):
        fed_cells([torch.zeros(1, 1, 3, 4)], rows, "Nothing")


def test_the_slot_holds_what_was_written_last():
    uses = [Use(0, "forward"), Use(1, "forward"), Use(0, "backward", read=1)]
    figure = shared_slot(uses, "kept", "One object")
    texts = [node.text for node in ElementTree.fromstring(figure.markup).iter(SVG + "text")]
    assert [text for text in texts if text.startswith("of cuda")] == ["of cuda:0", "of cuda:1", "of cuda:1"]
    assert any("hatched" in text for text in texts)
    assert figure.description.endswith("cuda:0 backward reads that of cuda:1, not its own.")


def test_nothing_is_hatched_where_each_reads_its_own():
    uses = [Use(0, "forward"), Use(0, "backward", read=0)]
    assert "hatched" not in shared_slot(uses, "kept", "One object").markup


@pytest.mark.parametrize("uses", [[], [Use(2, "forward")]])
def test_two_gpus_and_something_to_draw(uses):
    with pytest.raises(ValueError, match="`uses` must be of GPUs 0 and 1"):
        shared_slot(uses, "kept", "Nothing")
