"""The map of names says where every weight goes."""

import xml.etree.ElementTree as ElementTree

import pytest

from course.lessons.nb31.name_map import name_map

SVG = "{http://www.w3.org/2000/svg}"


def texts(figure):
    return [node.text for node in ElementTree.fromstring(figure.markup).iter(SVG + "text")]


def test_name_map_has_every_name_once():
    pairs = {"fc.weight": "head.weight", "bn.running_mean": "bn._mean"}
    figure = name_map(pairs, "Names", turned=["fc.weight"], skipped=["aux.weight"], unused=["x"], missing=["y"])
    written = texts(figure)
    for name in (*pairs, *pairs.values(), "aux.weight", "x", "y"):
        assert written.count(name) == 1
    assert written.count("transposed") == 1
    assert "aux.weight is skipped; x is unused; y is missing" in figure.description
    with pytest.raises(ValueError, match="no names to draw"):
        name_map({}, "Nothing")
