"""The sheet of the digits names every row and device."""

import xml.etree.ElementTree as ElementTree

from course.lessons.nb00.cast_sheet import cast_sheet

SVG = "{http://www.w3.org/2000/svg}"


def texts(figure):
    return [node.text for node in ElementTree.fromstring(figure.markup).iter(SVG + "text")]


def test_cast_sheet_names_every_row_and_device():
    shown = texts(cast_sheet())
    assert [text for text in shown if text.isdigit()] == list("0123456789")
    assert [text for text in shown if text.startswith("cuda:")] == [f"cuda:{k}" for k in range(8)]
