"""What a reader does in JupyterLab: run all cells, move a slider, search. Needs Chromium and its driver."""

from reader import all_of, move_a_slider, run_all, show, tagged, wait_for


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
