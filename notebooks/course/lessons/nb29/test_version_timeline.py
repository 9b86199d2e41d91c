"""The timeline of a tensor's version says which save fails, and which write was not counted."""

import xml.etree.ElementTree as ElementTree

import pytest

from course.lessons.nb29.version_timeline import version_timeline

SVG = "{http://www.w3.org/2000/svg}"


def texts(figure):
    return [node.text for node in ElementTree.fromstring(figure.markup).iter(SVG + "text")]


def test_timeline_marks_the_save_that_fails():
    entries = [("save", "loss_a(t)", 0), ("write", "t.unsqueeze_(1)", 0), ("save", "loss_b(t)", 1)]
    figure = version_timeline(entries, 1, "Version of the target")
    assert {"saved at 0, now 1: error", "saved; equal", "writes: version + 1"} <= set(texts(figure))
    assert "t.unsqueeze_(1): written, version becomes 1" in figure.description
    with pytest.raises(ValueError, match="`entries` is empty"):
        version_timeline([], 0, "Nothing")


def test_a_write_past_the_counter_stays_in_its_column():
    figure = version_timeline([("save", "h.square()", 0), ("write", "h.data.mul_(0)", 0)], 0, "Past")
    assert {"writes past the counter", "saved; equal"} <= set(texts(figure))
    assert "h.data.mul_(0): written past the counter, which stays at 0" in figure.description
