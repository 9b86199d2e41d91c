"""Sliders of the site: their figures come from the function of the notebook, and move in a browser without a kernel."""

from pathlib import Path

import nbformat
import pytest
import reader

pytest.importorskip("sphinx", reason="the site is built by Sphinx")

from website import frames, notebook

SCRIPT = frames.ROOT / "website" / "static" / "sliders.js"
DRAW = """\
from course.kit import figures
from course.kit.figures.svg import Canvas

def draw(rows, gpus):
    canvas = Canvas(200, 40, "rows", f"{rows} rows on {gpus} GPUs")
    canvas.text(10, 30, f"{rows} / {gpus}")
    return canvas.figure()"""
SLIDERS = "figures.sliders(draw, rows=(1, 4, 3), gpus=(1, 2, 1))"
MOVE = """
const input = document.querySelectorAll("input")[arguments[0]];
input.value = arguments[1];
input.dispatchEvent(new Event("input"));
return [document.querySelector(".drawing svg").textContent, document.querySelector(".said").textContent];
"""


@pytest.fixture
def cells():
    """A notebook of two cells, the second of which shows sliders."""
    shown = nbformat.v4.new_code_cell(SLIDERS, metadata={"tags": ["widget"]})
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(DRAW), shown])


@pytest.mark.exhaustive
def test_every_figure_is_there_and_the_sliders_move_without_a_kernel(cells, tmp_path: Path):
    drawn = frames.of_notebook(cells, tmp_path / "frames")[1]
    assert [slider["values"] for slider in drawn["sliders"]] == [[1, 2, 3, 4], [1, 2]]
    assert drawn["words"][0] == "1 rows on 1 GPUs" and len(drawn["frames"]) == 8
    notebook.with_sliders(cells.cells[1], "01-1", drawn)
    page = cells.cells[1].outputs[0].data["text/html"].replace("../_static/frames/", "")
    (tmp_path / "01-1.js").write_text(frames.script("01-1", drawn), encoding="utf-8")
    html = f"<!doctype html><meta charset=utf-8>{page}<script>{SCRIPT.read_text(encoding='utf-8')}</script>"
    (tmp_path / "page.html").write_text(html, encoding="utf-8")
    browser = reader.start_browser(tmp_path)
    try:
        browser.get((tmp_path / "page.html").as_uri())
        reader.wait_for("sliders", lambda: browser.find_elements("css selector", ".said"))
        assert "3 / 1" in browser.execute_script("return document.querySelector('svg').textContent")
        text, said = browser.execute_script(MOVE, 0, 3)
        assert "4 / 1" in text and said == "4 rows on 1 GPUs"
        text, said = browser.execute_script(MOVE, 1, 1)
        assert "4 / 2" in text and said == "4 rows on 2 GPUs"
        assert [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    finally:
        browser.quit()


def test_figures_that_are_there_are_not_drawn_again(cells, tmp_path, monkeypatch):
    (tmp_path / f"{frames.digest(cells.cells)}.json").write_text('{"kept": 1}', encoding="utf-8")
    monkeypatch.setattr(frames, "run", lambda *args: pytest.fail("a kernel was started"))
    assert frames.of_notebook(cells, tmp_path) == {1: {"kept": 1}}


@pytest.mark.parametrize(
    "ranges",
    [{"rows": (1, 32, 10), "gpus": (1, 8, 8)}, {"millions": (10, 20_000, 1000)}, {"x": (-32, 96, 60), "on": (0, 1, 0)}],
)
def test_many_values_become_few_with_ends_and_start_among_them(ranges):
    chosen = frames.values(ranges)
    total = 1
    for name, (low, high, start) in ranges.items():
        assert {low, high, start} <= set(chosen[name]) and chosen[name] == sorted(set(chosen[name]))
        total *= len(chosen[name])
    assert 40 < total <= frames.MOST * 1.2 or total == 64


def test_a_cell_that_shows_something_else_stays_as_it_is():
    assert frames.sliders_call('einsum_reading.EinsumBox("bi,ij->bj", (2, 3), (3, 4))') is None
    assert frames.sliders_call(SLIDERS) == "print_frames(draw, rows=(1, 4, 3), gpus=(1, 2, 1))"
