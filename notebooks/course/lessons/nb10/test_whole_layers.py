"""The figure of a sharded step: a whole layer fills its cell, a part fills its share, and the words say which."""

import xml.etree.ElementTree as ElementTree

import pytest

from course.lessons.nb10.whole_layers import whole_layers

SVG = "{http://www.w3.org/2000/svg}"
MOMENTS = [("forward 0", [True, False]), ("loss", [False, False]), ("backward 1", [False, True])]


def filled(figure):
    rects = ElementTree.fromstring(figure.markup).iter(SVG + "rect")
    return [float(rect.get("height")) for rect in rects if rect.get("stroke-width")]


def test_a_whole_layer_fills_its_cell_and_a_part_its_share():
    heights = filled(whole_layers(MOMENTS, 4, "A step"))
    whole = max(heights)
    assert heights == [whole, whole / 4, whole / 4, whole / 4, whole / 4, whole]


def test_the_description_names_the_layers():
    description = whole_layers(MOMENTS, 4, "A step").description
    assert description.endswith("forward 0: layers 0; loss: none; backward 1: layers 1")


@pytest.mark.parametrize("moments", [[], [("loss", [True]), ("step", [True, False])]])
def test_moments_that_do_not_fit_together(moments):
    with pytest.raises(ValueError, match="`moments` must all tell of the same layers"):
        whole_layers(moments, 2, "Nothing")
