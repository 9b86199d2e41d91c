"""The README's film: somebody opens notebook 00 in a real JupyterLab, predicts, runs, and sees.

    python notebooks/course/tests/browser/film.py     # writes docs/images/predict_run_see.gif; needs Chromium

It is no test. It is made anew when the first cells of notebook 00 look different; the README works without it.
"""

import io
import json
import shutil
import tempfile
from pathlib import Path

import reader
from PIL import Image

GIF = reader.ROOT / "docs" / "images" / "predict_run_see.gif"
NAME = "00_start_here.ipynb"
SIZE = (1000, 800)
SHORT, LONG = 1500, 4000  # milliseconds for a frame
COLOURS = 128


class Film:
    """Screenshots of a browser, and how long each is shown."""

    def __init__(self, browser) -> None:
        self.browser = browser
        self.frames: list[Image.Image] = []
        self.times: list[int] = []

    def shoot(self, milliseconds: int) -> None:
        picture = Image.open(io.BytesIO(self.browser.get_screenshot_as_png())).convert("RGB")
        self.frames.append(picture.quantize(COLOURS, dither=Image.Dither.NONE))
        self.times.append(milliseconds)

    def save(self, path: Path) -> None:
        first, *rest = self.frames
        first.save(path, save_all=True, append_images=rest, duration=self.times, loop=0, optimize=True)


def run_cell(browser, position: int) -> None:
    """Run one cell as Shift+Enter does, and wait for its end."""
    reader.show(browser, position)
    browser.execute_script("document.activeElement.blur()")  # a button that was pressed keeps its own cell active
    browser.execute_async_script(
        f"const notebook = {reader.NOTEBOOK}; notebook.content.deselectAll();"
        f"notebook.content.activeCellIndex = {position};"
        "window.jupyterapp.commands.execute('notebook:run-cell').then(arguments[0], arguments[0])"
    )
    reader.wait_for("count", lambda: reader.cells_of(browser)[position]["execution_count"] is not None)


def choose(browser, position: int, which: int) -> None:
    """Answer the prediction of a cell."""
    cell = reader.show(browser, position)
    (group, *_) = reader.wait_for("buttons", lambda: reader.all_of(cell, ".widget-radio-box"))
    reader.all_of(group, "input")[which].click()
    reader.wait_for("thanks", lambda: "Kept:" in cell.get_attribute("textContent"))


def look_at(browser, position: int, block: str) -> None:
    """Bring a cell to the top ("start") or the bottom ("end") of the window."""
    node = f"{reader.NOTEBOOK}.content.widgets[{position}].node"
    browser.execute_script(f"{node}.scrollIntoView({{block: '{block}'}})")


def play(lab, browser) -> Film:
    lab.open(browser, NAME)
    browser.execute_script("window.jupyterapp.commands.execute('application:toggle-left-area')")
    cells = reader.cells_of(browser)
    question = reader.tagged(cells, "predict")[0]
    browser.execute_async_script(
        "window.jupyterapp.commands.execute('notebook:clear-all-cell-outputs').then(arguments[0], arguments[0])"
    )
    film = Film(browser)
    for position in (position for position in range(question) if cells[position]["cell_type"] == "code"):
        run_cell(browser, position)
    run_cell(browser, question)
    reader.show(browser, question)
    look_at(browser, question - 1, "start")
    film.shoot(LONG)
    choose(browser, question, 0)
    look_at(browser, question - 1, "start")
    film.shoot(SHORT)
    for position in (question + 1, question + 3):
        run_cell(browser, position)
        cell = reader.show(browser, position)
        reader.wait_for(
            "figure", lambda cell=cell: reader.all_of(cell, ".jp-OutputArea-output img, .jp-OutputArea svg")
        )
        look_at(browser, position, "start")
        film.shoot(2 * LONG)
    return film


def main() -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        project = Path(folder) / "project"
        shutil.copytree(reader.ROOT / "notebooks", project / "notebooks")
        browser = reader.start_browser(Path(folder))
        browser.set_window_size(*SIZE)
        lab = reader.Lab(project, Path(folder))
        lab.start()
        try:
            film = play(lab, browser)
        finally:
            lab.stop()
            browser.quit()
        film.save(GIF)
    print(json.dumps({"frames": len(film.frames), "bytes": GIF.stat().st_size}))


if __name__ == "__main__":
    main()
