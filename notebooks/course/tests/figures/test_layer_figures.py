"""Figures of the notebooks on layers: what they compute, what they say, what they refuse."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from course.kit import figures
from course.kit.figures.bars import bars
from course.kit.figures.group_wiring import class_wiring, group_wiring
from course.kit.figures.number_grid import number_grid
from course.kit.figures.palette import WRONG_COLOUR
from course.lessons.nb23.conv_matrix import _Steps, conv_matrix
from course.lessons.nb23.unfold_conv import output_size
from course.lessons.nb25.einsum_explain import explain
from course.lessons.nb25.einsum_reading import EinsumBox, einsum_reading, parse_shapes
from frcnn_lite.layers import class_to_group

SVG = "{http://www.w3.org/2000/svg}"


def texts(figure):
    return [node.text for node in ElementTree.fromstring(figure.markup).iter(SVG + "text")]


@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 0, 1), (2, 1, 1), (1, 2, 2), (3, 0, 1)])
def test_matrix_of_the_figure_is_torchs_unfold(stride, padding, dilation):
    image, filters = np.asarray(figures.cast()[3], dtype=float), np.arange(9.0).reshape(3, 3)
    steps = _Steps(image, filters, stride, padding, dilation)
    tensor = torch.tensor(image)[None, None]
    settings = {"stride": stride, "padding": padding, "dilation": dilation}
    assert np.allclose(steps.matrix.T, F.unfold(tensor, 3, **settings)[0].numpy())
    assert np.allclose(steps.output, F.conv2d(tensor, torch.tensor(filters)[None, None], **settings)[0, 0].numpy())


def test_every_position_of_the_window_can_be_drawn():
    image, filters = figures.cast()[0], np.ones((3, 3))
    rows, columns = output_size((8, 8), 3, 2, 1)
    drawn = [conv_matrix(image, filters, k, stride=2, padding=1) for k in range(rows * columns)]
    assert len({figure.markup for figure in drawn}) == rows * columns
    assert "row 5 of the 16 x 9 matrix" in drawn[5].description
    with pytest.raises(ValueError, match="positions 0 to 15"):
        conv_matrix(image, filters, 16, stride=2, padding=1)
    with pytest.raises(ValueError, match="do not fit"):
        conv_matrix(image, filters, 0, dilation=4)


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


def test_einsum_figure_marks_summed_and_stretched_letters():
    figure = einsum_reading(explain("gik,gkj->gij", (1, 64, 64), (64, 64, 16)))
    assert figure.markup.count(f'stroke="{WRONG_COLOUR}"') == 1
    assert "careful: A has 1 here" in figure.description
    assert any("4,194,304 turns" in text for text in texts(figure))


def test_einsum_box_answers_a_mistake_in_words_and_goes_on():
    box = EinsumBox("ij,jk->ik", (2, 3), (3, 4))
    before = box.picture.value
    box.shapes.value = "2, 3; 5, 4"
    assert "expected one size for j" in box.words.value
    assert box.picture.value == before
    box.shapes.value = "2, 3; 3, 5"
    assert box.picture.value == einsum_reading(explain("ij,jk->ik", (2, 3), (3, 5))).markup
    box.equation.value = "ij,jk,kl->il"
    assert "cheapest" not in box.words.value
    box.shapes.value = "2, 3; 3, 5; 5, 1"
    cheapest = box.words.value.partition("cheapest in pairs")[2]
    assert 0 < cheapest.index("kl,jk-&gt;") < cheapest.index("ij-&gt;il")  # the last two first


@pytest.mark.parametrize("words", ["2, x", "2, 0", "-1"])
def test_shapes_in_words(words):
    assert parse_shapes("2, 3; 3") == [(2, 3), (3,)]
    with pytest.raises(ValueError, match="`shapes`: expected"):
        parse_shapes(words)
