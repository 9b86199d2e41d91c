"""The canvas: well-formed, deterministic, with words."""

import xml.etree.ElementTree as ElementTree

import pytest

from course.kit.figures.svg import Canvas, number

SVG = "{http://www.w3.org/2000/svg}"


def test_document_is_well_formed_and_speaks():
    canvas = Canvas(100, 50, "A <title>", 'words & "more"')
    canvas.text(1, 2, "a < b & c", anchor="middle")
    canvas.line(0, 0, 1, 1, stroke_width=2, stroke_dasharray=None)
    root = ElementTree.fromstring(canvas.figure().markup)
    assert root.get("role") == "img"
    assert root.get("viewBox") == "0 0 100 50"
    assert [root.find(SVG + tag).text for tag in ("title", "desc")] == ["A <title>", 'words & "more"']
    assert root.find(SVG + "text").text == "a < b & c"
    assert root.find(SVG + "line").get("stroke-width") == "2"
    assert "stroke-dasharray" not in root.find(SVG + "line").attrib


def test_a_figure_brings_its_own_paper():
    """A dark theme must not shine through: the first shape covers everything."""
    root = ElementTree.fromstring(Canvas(30, 20, "t", "d").figure().markup)
    paper = root.find(SVG + "rect")
    assert [paper.get(name) for name in ("x", "y", "width", "height", "fill")] == ["0", "0", "30", "20", "#ffffff"]


def test_mimebundle_holds_the_picture_and_its_words():
    bundle = Canvas(10, 10, "Title", "What it shows.").figure()._repr_mimebundle_()
    assert bundle["image/svg+xml"].startswith("<svg ")
    assert bundle["text/plain"] == "Title. What it shows."


@pytest.mark.parametrize(("title", "description", "named"), [("", "d", "title"), ("t", "  ", "description")])
def test_a_figure_without_words_is_refused(title, description, named):
    with pytest.raises(ValueError, match=f"`{named}` is empty"):
        Canvas(10, 10, title, description)


@pytest.mark.parametrize(
    ("value", "written"),
    [(1.0, "1"), (0.1 + 0.2, "0.3"), (-0.001, "0"), (2, "2"), (1234.567, "1234.57"), (-5.5, "-5.5"), (100, "100")],
)
def test_numbers_are_rounded(value, written):
    assert number(value) == written


def test_hatch_stays_inside_its_rectangle():
    canvas = Canvas(100, 100, "t", "d")
    canvas.hatch(10, 20, 30, 15, step=4)
    data = ElementTree.fromstring(canvas.figure().markup).find(SVG + "path").get("d")
    ends = [tuple(map(float, end.split())) for line in data[1:].split("M") for end in line.split("L")]
    assert len(ends) >= 20
    assert all(10 <= x <= 40 and 20 <= y <= 35 for x, y in ends)
    assert all(abs((x1 + y1) - (x2 + y2)) < 1e-6 for (x1, y1), (x2, y2) in zip(ends[::2], ends[1::2], strict=True))


def test_save_writes_the_document(tmp_path):
    figure = Canvas(10, 10, "t", "d").figure()
    figure.save(tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").read_text(encoding="utf-8") == figure.markup
