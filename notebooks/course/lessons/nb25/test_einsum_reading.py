"""The reading of an einsum marks letters, and its box answers a mistake in words."""

import xml.etree.ElementTree as ElementTree

import pytest

from course.kit.figures.palette import WRONG_COLOUR
from course.lessons.nb25.einsum_explain import explain
from course.lessons.nb25.einsum_reading import EinsumBox, einsum_reading, parse_shapes

SVG = "{http://www.w3.org/2000/svg}"


def texts(figure):
    return [node.text for node in ElementTree.fromstring(figure.markup).iter(SVG + "text")]


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
