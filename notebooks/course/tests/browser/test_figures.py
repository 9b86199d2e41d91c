"""Every stored drawing on one page of Chromium: its words stay inside, and it shrinks with the page.

Needs Chromium and its driver. One page for all drawings, so the browser starts once.
"""

import re
from pathlib import Path

import nbformat
import pytest
import reader

NOTEBOOKS = reader.ROOT / "notebooks"
SLACK = 1.5  # pixels: fonts differ a little from machine to machine
# The box of each piece of text in the drawing's own pixels, after rotation, against the drawing's edges.
OUTSIDE = """
return [...document.querySelectorAll("figure")].flatMap(figure => {
  const drawing = figure.querySelector("svg"), edge = drawing.getBoundingClientRect();
  const scale = drawing.viewBox.baseVal.width / edge.width;
  return [...drawing.querySelectorAll("text")].flatMap(text => {
    const box = text.getBoundingClientRect();
    if (!box.width) return [];
    const over = scale * Math.max(
      edge.left - box.left, box.right - edge.right, edge.top - box.top, box.bottom - edge.bottom);
    return over > arguments[0] ? [`${figure.id}: "${text.textContent}" stands ${over.toFixed(1)} px outside`] : [];
  });
});
"""
WIDTHS = """
return [...document.querySelectorAll("figure")].map(figure => {
  const drawing = figure.querySelector("svg");
  return [figure.id, drawing.viewBox.baseVal.width, drawing.getBoundingClientRect().width, figure.clientWidth];
});
"""


def drawings() -> dict[str, str]:
    """The stored SVG drawings by notebook and cell."""
    found = {}
    for path in sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb")):
        for position, cell in enumerate(nbformat.read(path, 4).cells):
            for k, output in enumerate(cell.get("outputs", [])):
                markup = output.get("data", {}).get("image/svg+xml")
                if markup:
                    found[f"{path.stem[:2]} cell {position} output {k}"] = markup
    return found


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A browser with every drawing, each in a box as wide as the page that scrolls where it must."""
    folder = tmp_path_factory.mktemp("figures")
    boxes = "\n".join(
        f'<figure id="{name}" style="margin:0;overflow:auto">{markup[markup.index("<svg") :]}</figure>'
        for name, markup in drawings().items()
    )
    Path(folder / "all.html").write_text(f"<!doctype html><meta charset=utf-8>{boxes}", encoding="utf-8")
    browser = reader.start_browser(folder)
    browser.get((folder / "all.html").as_uri())
    yield browser
    browser.quit()


def test_words_stay_inside_their_drawing(page):
    page.set_window_size(1440, 900)
    assert len(drawings()) > 50
    assert page.execute_script(OUTSIDE, SLACK) == []


@pytest.mark.parametrize("width", [390, 900, 1440])
def test_drawings_shrink_with_the_page_and_stay_legible(page, width):
    page.set_window_size(width, 900)
    for name, own, shown, room in page.execute_script(WIDTHS):
        assert own * 2 / 3 - 1 <= shown <= own + 1, f"{name} is {own} px wide and shown {shown:.0f} px wide"
        assert shown <= max(room, own * 2 / 3) + 1, f"{name} does not shrink: {shown:.0f} px in {room} px"


def test_a_word_outside_would_be_seen(page):
    """The first drawing with a text moved out: the measure finds it."""
    name = next(iter(drawings()))
    page.execute_script(
        "const text = document.getElementById(arguments[0]).querySelector('text'); text.setAttribute('x', 100000)", name
    )
    assert any(re.match(re.escape(name), said) for said in page.execute_script(OUTSIDE, SLACK))
