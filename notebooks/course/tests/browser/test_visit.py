"""A reader's visit and the next one: what is read, answered and saved comes back whole, and the file stays as stored.

A file that stays as it was, byte for byte, passes nbval as it did before; what other editors leave in it is judged by
notebooks/course/tests/notebooks/test_live_outputs.py. Needs Chromium and its driver.
"""

import json

import pytest
from reader import (
    all_of,
    answer,
    cells_of,
    is_changed,
    move_a_slider,
    restart_kernel,
    run_all,
    save,
    set_source,
    severe,
    show,
    tagged,
    wait_for,
)

from course.tools.my_notebooks import afresh, bring

SUMMARY = "Outcome (open after you have answered)"


@pytest.fixture(
    params=[
        pytest.param("00_start_here.ipynb", marks=pytest.mark.exhaustive),
        "01_scatter_rows_that_vanished.ipynb",
    ]
)
def name(request):
    return request.param


def test_a_visit_leaves_the_file_as_it_was_and_the_next_finds_everything(lab, browser, project, name):
    file = project / "notebooks" / name
    stored = file.read_bytes()
    visit(lab, browser, name)
    save(browser)
    assert file.read_bytes() == stored
    assert "You predicted" in json.dumps(cells_of(browser)), "saving has changed what the reader sees"
    lab.stop()
    browser.get("about:blank")

    lab.start()
    severe(browser)
    lab.open(browser, name)
    questions_are_not_spoiled(browser)
    cells = cells_of(browser)
    for position in tagged(cells, "predict"):
        question, *choices = first_words(cells[position])
        for words in (question, *choices):
            wait_for(words, lambda words=words, position=position: words in text_of(browser, position))
    for position in tagged(cells, "widget"):
        assert "Live in JupyterLab" in text_of(browser, position)
    page = browser.execute_script("return document.body.textContent")
    assert "Error displaying widget" not in page and "Loading widget" not in page
    assert severe(browser) == []
    assert not is_changed(browser)


def test_what_a_reader_writes_is_all_that_changes_and_a_fresh_start_keeps_it(lab, browser, project):
    series, own = project / "notebooks", project / "my_notebooks"
    bring(series, own)
    file = own / "00_start_here.ipynb"
    stored = file.read_bytes()
    before = json.loads(stored)
    lab.open(browser, file.name, folder=own.name)
    position = tagged(before["cells"], "predict")[0]
    note = "# I would have said five.\n" + "".join(before["cells"][position]["source"])
    set_source(browser, position, note)
    save(browser)
    after = json.loads(file.read_bytes())
    assert "".join(after["cells"][position].pop("source")) == note
    del before["cells"][position]["source"]
    assert after == before
    assert (series / file.name).read_bytes() == stored
    bring(series, own)
    assert "I would have said five" in file.read_text(encoding="utf-8"), "the next start has taken the note away"
    afresh(["00"], series, own)
    assert file.read_bytes() == stored
    assert "I would have said five" in (own / "before" / file.name).read_text(encoding="utf-8")


def visit(lab, browser, name):
    """Open, look at a source, run all, answer, restart, run all again, move every slider."""
    lab.open(browser, name)
    assert not is_changed(browser), "opening alone has changed the notebook"
    questions_are_not_spoiled(browser)
    predictions = tagged(run_all(browser), "predict")
    open_source(browser, predictions[0])
    for position in predictions:
        answer(browser, position)
    restart_kernel(browser)
    for position in predictions:
        wait_for("end of the buttons", lambda position=position: not buttons(browser, position))
        assert "Run this cell again" in show(browser, position).text
    cells = run_all(browser)  # now the outcomes are compared with the answers
    for position in revealing(cells):
        assert "You predicted" in show(browser, position).text
        assert not outcomes(browser, position)
    for position in predictions:
        wait_for("buttons", lambda position=position: buttons(browser, position))
    for position in tagged(cells, "widget"):
        move_a_slider(browser, position)
    assert "Jupyter news" not in browser.execute_script("return document.body.textContent")


def questions_are_not_spoiled(browser):
    """What a reader sees of a file that is opened: each question once, without its source, and no outcome."""
    cells = cells_of(browser)
    for position in tagged(cells, "predict"):
        question, *_ = first_words(cells[position])
        wait_for(question, lambda question=question, position=position: question in show(browser, position).text)
        assert show(browser, position).text.count(question) == 1
        assert not sources(browser, position)
    assert revealing(cells)
    for position in revealing(cells):
        folded = wait_for("outcomes", lambda position=position: outcomes(browser, position))
        assert not any(can_be_read(browser, part) for part in folded)
        assert seen_outputs(browser, position) == len(folded), "what stands beside a folded outcome tells it"
    first = revealing(cells)[0]
    for part in outcomes(browser, first):
        all_of(part, "summary")[0].click()
        assert can_be_read(browser, part)
    wait_for("all outputs", lambda: seen_outputs(browser, first) == len(cells[first]["outputs"]))


def revealing(cells):
    """The positions of the cells that compare outcomes with predictions."""
    return [k for k, cell in enumerate(cells) if "learn.reveal(" in cell["source"]]


def outcomes(browser, position):
    """The folded outcomes of a cell, open or not."""
    return [part for part in all_of(show(browser, position), ".jp-OutputArea details") if part.text.startswith(SUMMARY)]


def can_be_read(browser, outcome):
    """Whether a fold is open. Selenium's own words for what is visible take in what `<details>` hide."""
    return browser.execute_script("return arguments[0].lastElementChild.checkVisibility()", outcome)


def seen_outputs(browser, position):
    """How many outputs of a cell can be seen."""
    return sum(output.is_displayed() for output in all_of(show(browser, position), ".jp-OutputArea-output"))


def sources(browser, position):
    """The source of a cell where it can be seen."""
    return [editor for editor in all_of(show(browser, position), ".jp-InputArea-editor") if editor.is_displayed()]


def open_source(browser, position):
    """Click on what stands for a hidden source."""
    (closed,) = all_of(show(browser, position), ".jp-InputPlaceholder")
    closed.click()
    (editor,) = wait_for("source", lambda: sources(browser, position))
    assert "learn.predict(" in editor.text


def buttons(browser, position):
    """The buttons of a cell that can be seen."""
    return [button for button in all_of(show(browser, position), ".jp-OutputArea input") if button.is_displayed()]


def text_of(browser, position):
    """The words of a cell on the page, seen or folded."""
    return show(browser, position).get_attribute("textContent")


def first_words(cell):
    """The lines of a cell's first output in words, as they read in HTML."""
    lines = "".join(cell["outputs"][0]["data"]["text/plain"]).replace("`", "").splitlines()
    return [line.removeprefix("Predict: ").removeprefix("  ( ) ") for line in lines]
