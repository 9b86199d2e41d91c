"""What a reader does in JupyterLab: run all cells, move a slider, search. Needs Chromium and its driver."""

import pytest
from reader import all_of, cells_of, move_a_slider, run_all, show, tagged, wait_for

from course.kit.learn.predict import TOLD

BOX = "(({width, right}) => [width, right])(arguments[0].getBoundingClientRect())"


def command(browser, name: str, **arguments) -> None:
    """Run a command of JupyterLab's menus."""
    run = "const done = arguments[2]; window.jupyterapp.commands.execute(arguments[0], arguments[1]).then(done, done)"
    browser.execute_async_script(run, name, arguments)


def narrow(browser, width: int) -> None:
    """A page of this width, without the list of files."""
    if browser.execute_script("return !window.jupyterapp.shell.leftCollapsed"):
        command(browser, "application:toggle-left-area")
    size = {"width": width, "height": 2000, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def test_run_all_cells_and_move_a_slider(lab, browser):
    lab.open(browser, "01_scatter_rows_that_vanished.ipynb")
    cells = run_all(browser)

    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    for cell in code:
        raised = [output["evalue"] for output in cell["outputs"] if output["output_type"] == "error"]
        assert not raised or "raises-exception" in cell["metadata"].get("tags", []), raised

    widgets = tagged(cells, "widget")
    assert widgets, "notebook 01 has no cell with the tag 'widget'"
    move_a_slider(browser, widgets[0])

    narrow(browser, 390)
    cell = show(browser, widgets[0])
    edge = browser.execute_script("return arguments[0].getBoundingClientRect().right", cell)
    tracks = wait_for("sliders", lambda: all_of(cell, ".slider-container"))
    places = [browser.execute_script(f"return {BOX}", track) for track in tracks]
    assert len(places) == 3 and all(width > 60 and right <= edge for width, right in places), places
    (picture, *_) = all_of(cell, ".widget-html:has(svg)")
    assert browser.execute_script(f"return {BOX}", picture)[1] <= edge
    assert browser.execute_script("return getComputedStyle(arguments[0]).overflowX", picture) == "auto"


@pytest.mark.exhaustive
def test_search_the_failures(lab, browser):
    lab.open(browser, "failures.ipynb")
    run_all(browser)
    cell = show(browser, 1)
    (field,) = wait_for("field", lambda: all_of(cell, ".jp-OutputArea textarea"))
    field.send_keys("found at least two devices")

    def titles() -> list[str]:
        return [element.get_attribute("textContent") for element in all_of(cell, ".jp-OutputArea summary")]

    (title,) = wait_for("one result", lambda: found if len(found := titles()) == 1 else None)
    assert title.startswith("two-devices:")


# The contrast of every piece of text of a notebook's prose and outputs, but for drawings, which bring their own ground.
FAINT = """
const seen = colour => colour.match(/[\\d.]+/g).map(Number);
const luminance = ([r, g, b]) => [r, g, b].map(x => x / 255)
  .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)
  .reduce((sum, x, k) => sum + x * [0.2126, 0.7152, 0.0722][k], 0);
const ground = element => {
  for (; element; element = element.parentElement) {
    const colour = seen(getComputedStyle(element).backgroundColor);
    if (colour.length < 4 || colour[3] > 0.5) return colour;
  }
  return [255, 255, 255];
};
const found = [];
for (const part of arguments[0].querySelectorAll(".jp-OutputArea-output, .jp-RenderedMarkdown")) {
  const walk = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const box = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !box.checkVisibility()) continue;
    if (box.closest("svg, style, .jp-InternalAnchorLink")) continue;
    const two = [luminance(seen(getComputedStyle(box).color)), luminance(ground(box))].sort((a, b) => b - a);
    const contrast = (two[0] + 0.05) / (two[1] + 0.05);
    found.push([contrast, walk.currentNode.data.trim().slice(0, 60)]);
  }
}
return found;
"""
# Of the cells that JupyterLab has drawn: the text below a closed outcome is hidden.
OPEN_OUTCOMES = f"for (const told of document.querySelectorAll('details.{TOLD}')) told.open = true"
# What stands beyond the right edge of its cell, but for what scrolls by itself: drawings, sources, tables of text.
BEYOND = """
return [...arguments[0].querySelectorAll("p, li, h1, h2, h3, summary, label")]
  .filter(part => part.checkVisibility() && !part.closest("svg, table"))
  .map(part => [part.getBoundingClientRect().right - arguments[0].getBoundingClientRect().right, part.textContent])
  .filter(([over, text]) => over > 1).map(([over, text]) => `${text.slice(0, 60)}: ${over.toFixed(0)} px`);
"""


@pytest.mark.parametrize("theme", ["JupyterLab Light", pytest.param("JupyterLab Dark", marks=pytest.mark.exhaustive)])
def test_words_can_be_read_in_both_themes_and_on_every_page(lab, browser, theme):
    lab.open(browser, "03_a_loss_is_a_sum_and_a_count.ipynb")
    command(browser, "apputils:change-theme", theme=theme)
    cells = cells_of(browser)
    shown = [k for k, cell in enumerate(cells) if cell["cell_type"] == "markdown"][:6]
    for width in (390, 900, 1440):
        narrow(browser, width)
        for position in [*shown, *tagged(cells, "predict"), *tagged(cells, "solution"), len(cells) - 1]:
            cell = show(browser, position)
            browser.execute_script(OPEN_OUTCOMES)
            pieces = wait_for("words", lambda cell=cell: browser.execute_script(FAINT, cell))
            assert [text for contrast, text in pieces if contrast < 4.5] == [], f"{theme}, {width} px, cell {position}"
            beyond = browser.execute_script(BEYOND, cell)
            assert beyond == [], f"{theme}, {width} px, cell {position}"
    colours = "color: rgb(128, 128, 128); background: rgb(110, 110, 110)"
    paint = f"arguments[0].querySelector('p').style.cssText = '{colours}; width: 3000px'"
    browser.execute_script(paint, first := show(browser, shown[0]))
    assert any(contrast < 4.5 for contrast, _ in browser.execute_script(FAINT, first)), "it would not see grey on grey"
    assert browser.execute_script(BEYOND, first), "it would not see a line that is too wide"
