"""The timeline of a tensor's version says which save fails."""

import xml.etree.ElementTree as ElementTree

import pytest

from course.lessons.nb29.version_timeline import VersionEvent, version_timeline

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
