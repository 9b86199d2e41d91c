"""The drawing of what builds on what: no detour is drawn twice, nothing leaves its box, and a circle is refused."""

import xml.etree.ElementTree as ElementTree

import pytest

from course.kit.figures.prerequisites import BOX_HEIGHT, BOX_WIDTH, LETTERS, prerequisites

SVG = "{http://www.w3.org/2000/svg}"
TITLES = {"00": "Start here", "01": "Pooling: the rule", "02": "Pooling: the kernels that run it fast", "03": "A loss"}


def test_an_arrow_is_left_out_where_others_lead_the_same_way():
    figure = prerequisites(TITLES, {"01": ["00"], "02": ["00", "01"], "03": ["00"]})
    assert figure.description.endswith("02 Pooling: the kernels that run it fast builds on 01; 03 A loss builds on 00")
    assert figure.markup.count("<polyline") == 3


def test_a_second_parent_is_drawn_dashed():
    figure = prerequisites(TITLES, {"01": ["00"], "02": ["00"], "03": ["01", "02"]})
    assert "03 A loss builds on 01 and 02" in figure.description
    lines = list(ElementTree.fromstring(figure.markup).iter(SVG + "polyline"))
    assert len(lines) == 4 and sum(node.get("stroke-dasharray") is not None for node in lines) == 1


def test_boxes_lie_apart_and_inside_and_their_lines_are_short():
    figure = prerequisites(TITLES, {"01": ["00"], "02": ["01"], "03": ["00"]})
    root = ElementTree.fromstring(figure.markup)
    boxes = [node for node in root.iter(SVG + "rect") if float(node.get("height")) == BOX_HEIGHT]
    corners = {(float(node.get("x")), float(node.get("y"))) for node in boxes}
    assert len(corners) == len(TITLES)
    for x, y in corners:
        assert x + BOX_WIDTH < float(root.get("width")) and y + BOX_HEIGHT < float(root.get("height"))
    inside = [node.text for node in root.iter(SVG + "text") if node.get("font-size") == "11"]
    assert "Pooling: the" in inside and max(map(len, inside)) <= LETTERS


def test_a_title_stands_whole_in_its_box_as_long_as_three_lines_hold_it():
    titles = {
        "00": "Testing multi-GPU code without GPUs",
        "01": "A title of very many words that no box of ours could hold",
    }
    root = ElementTree.fromstring(prerequisites(titles, {}).markup)
    lines = [node.text for node in root.iter(SVG + "text") if node.get("font-size") == "11"]
    assert lines[:3] == ["Testing", "multi-GPU code", "without GPUs"]
    assert len(lines) == 6 and lines[-1].endswith("…")


@pytest.mark.parametrize("needs", [{"01": ["02"]}, {"01": ["07"]}, {"01": ["01"]}])
def test_a_notebook_builds_on_what_comes_before_it(needs):
    with pytest.raises(ValueError, match=r"01 needs 0[127], which are not notebooks before it"):
        prerequisites(TITLES, needs)
    with pytest.raises(ValueError, match="`titles` is empty"):
        prerequisites({}, {})
