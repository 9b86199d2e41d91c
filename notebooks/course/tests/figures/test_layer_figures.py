"""Figures of the notebooks on layers: grids of numbers, bars and the wires between groups."""

import xml.etree.ElementTree as ElementTree

import pytest
import torch

from course.kit.figures.bars import bars
from course.kit.figures.group_wiring import class_wiring, group_wiring
from course.kit.figures.number_grid import number_grid
from frcnn_lite.layers import class_to_group

SVG = "{http://www.w3.org/2000/svg}"


def texts(figure):
    return [node.text for node in ElementTree.fromstring(figure.markup).iter(SVG + "text")]


def test_number_grid_writes_every_number():
    figure = number_grid([[1, 2], [3, 4]], "Numbers", "Four of them.")
    assert texts(figure) == ["Numbers", "1", "2", "3", "4"]
    with pytest.raises(ValueError, match="rows of one length"):
        number_grid([[1], [2, 3]], "Numbers", "Ragged.")


def test_bars_write_their_values():
    figure = bars({"one": 24.0, "two": 1.25}, "Memory", "x", marked="two")
    assert {"24 x", "1.25 x"} <= set(texts(figure))
    assert figure.description == "one: 24 x; two: 1.25 x."
    for values, marked in (({}, None), ({"a": -1.0}, None), ({"a": 1.0}, "b")):
        with pytest.raises(ValueError, match=r"values|marked"):
            bars(values, "Memory", marked=marked)


@pytest.mark.parametrize(("cin", "cout", "groups"), [(6, 12, 3), (4, 8, 4), (3, 3, 1)])
def test_wires_are_the_weights_of_the_layer(cin, cout, groups):
    figure = group_wiring(cin, cout, groups)
    wires = list(ElementTree.fromstring(figure.markup).iter(SVG + "line"))
    weights_a_tap = torch.nn.Conv2d(cin, cout, 1, groups=groups).weight.numel()
    assert len(wires) == weights_a_tap
    assert f"{weights_a_tap} of {cin * cout} weights" in figure.description


def test_wiring_refuses_what_the_layer_refuses():
    with pytest.raises(ValueError, match="`groups` is 4: it must divide 6 input and 12 output channels"):
        group_wiring(6, 12, 4)
    with pytest.raises(ValueError, match="no class"):
        class_wiring((0, 0))


def test_class_wiring_says_the_index():
    words = ", ".join(map(str, class_to_group((3, 0, 5)).tolist()))
    assert words in class_wiring((3, 0, 5)).description
