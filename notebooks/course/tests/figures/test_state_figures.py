"""Figures of the notebooks on in-place errors and on weights: what they say, what they refuse."""

import xml.etree.ElementTree as ElementTree

import pytest

from course.lessons.nb29.version_timeline import VersionEvent, version_timeline
from course.lessons.nb30.name_map import name_map

SVG = "{http://www.w3.org/2000/svg}"


def texts(figure):
    return [node.text for node in ElementTree.fromstring(figure.markup).iter(SVG + "text")]


def test_timeline_marks_the_save_that_fails():
    events = [VersionEvent("loss_a(t)", "save", 0), VersionEvent("t.unsqueeze_(1)", "write", 1)]
    events.append(VersionEvent("loss_b(t)", "save", 1))
    figure = version_timeline(events, "Version of the target")
    assert {"saved at 0, now 1: error", "saved, still good", "writes: version + 1"} <= set(texts(figure))
    assert "t.unsqueeze_(1): written, version becomes 1" in figure.description
    with pytest.raises(ValueError, match="`events` is empty"):
        version_timeline([], "Nothing")


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
