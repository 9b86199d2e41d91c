"""The manager of files of `make lab`: a notebook in stored form comes back from a visit in stored form."""

import asyncio
import shutil
import sys
from pathlib import Path

import nbformat
import pytest
from ipykernel.ipkernel import IPythonKernel

from course.tools.lab import Contents

NOTEBOOKS = Path(__file__).resolve().parents[2]
WIDGET = {
    "output_type": "display_data",
    "data": {"application/vnd.jupyter.widget-view+json": {"model_id": "5f3c"}, "text/plain": "VBox(children=())"},
}


@pytest.fixture
def contents(tmp_path, monkeypatch):
    """A manager of a folder, which signs into the same folder; `load` and `save` as JupyterLab calls them."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    manager = Contents(root_dir=str(tmp_path))
    shutil.copy(NOTEBOOKS / "00_start_here.ipynb", tmp_path / "00.ipynb")
    manager.load = lambda path: asyncio.run(manager.get(path, type="notebook"))["content"]
    manager.store = lambda path, content: asyncio.run(
        manager.save({"type": "notebook", "format": "json", "content": content}, path)
    )
    manager.notary.db_file = ":memory:"
    return manager


def code(content):
    return [cell for cell in content["cells"] if cell["cell_type"] == "code"]


def test_a_stored_notebook_is_handed_out_with_the_metadata_that_jupyterlab_would_write(contents):
    metadata = contents.load("00.ipynb")["metadata"]
    assert metadata["kernelspec"] == {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    assert metadata["language_info"] == IPythonKernel.language_info
    assert metadata["language_info"]["version"] == sys.version.split()[0]


def test_what_a_visit_leaves_of_itself_is_not_saved(contents, tmp_path):
    before = (tmp_path / "00.ipynb").read_bytes()
    content = contents.load("00.ipynb")
    content["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
    for count, cell in enumerate(code(content), start=40):  # the last of several runs
        cell["execution_count"] = count
        cell["metadata"] |= {"execution": {"iopub.execute_input": "today"}, "scrolled": True}
        cell["outputs"].append({**WIDGET, "metadata": {"frcnn_lite": {"still": None}}})
    contents.store("00.ipynb", content)
    assert (tmp_path / "00.ipynb").read_bytes() == before
    assert code(content)[0]["execution_count"] == 40, "the notebook in the browser was changed"


def test_a_source_that_was_opened_is_hidden_again(contents, tmp_path):
    before = (tmp_path / "00.ipynb").read_bytes()
    content = contents.load("00.ipynb")
    opened = [cell for cell in code(content) if cell["metadata"].pop("jupyter", None)]
    assert opened
    contents.store("00.ipynb", content)
    assert (tmp_path / "00.ipynb").read_bytes() == before


def test_a_saved_notebook_is_trusted_as_it_was(contents):
    content = contents.load("00.ipynb")
    assert not code(content)[0]["metadata"]["trusted"]
    for cell in code(content):
        cell["metadata"]["trusted"] = True  # as after running it
    contents.store("00.ipynb", content)
    assert all(cell["metadata"]["trusted"] for cell in code(contents.load("00.ipynb")))


def test_errors_on_purpose_are_one_line_and_the_readers_own_are_whole(contents):
    content = contents.load("00.ipynb")
    error = {"output_type": "error", "ename": "KeyError", "evalue": "'a'", "traceback": ["in cell 3", "KeyError: 'a'"]}
    mine, on_purpose = code(content)[:2]
    on_purpose["metadata"]["tags"] = ["raises-exception"]
    mine["outputs"], on_purpose["outputs"] = [dict(error)], [dict(error)]
    contents.store("00.ipynb", content)
    mine, on_purpose = code(contents.load("00.ipynb"))[:2]
    assert mine["outputs"][0]["traceback"] == error["traceback"]
    assert on_purpose["outputs"][0]["traceback"] == ["KeyError: 'a'"]


def test_a_copy_of_a_stored_notebook_is_in_stored_form_too(contents, tmp_path):
    asyncio.run(contents.copy("00.ipynb", "mine.ipynb"))
    assert (tmp_path / "mine.ipynb").read_bytes() == (tmp_path / "00.ipynb").read_bytes()


def test_a_notebook_of_the_readers_own_is_left_alone(contents, tmp_path):
    content = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "r", "display_name": "R"}, "mine": 1},
        "cells": [{"cell_type": "code", "id": "a", "source": "1", "metadata": {"scrolled": True},
                   "execution_count": 7, "outputs": [{**WIDGET, "metadata": {}}]}],
    }  # fmt: skip
    contents.store("own.ipynb", content)
    (cell,) = nbformat.read(tmp_path / "own.ipynb", as_version=4).cells
    assert cell["outputs"][0]["data"] == WIDGET["data"]
    assert (cell["execution_count"], cell["metadata"]) == (7, {"scrolled": True})
    assert contents.load("own.ipynb")["metadata"] == content["metadata"]
    (tmp_path / "words.txt").write_text("plain")
    assert asyncio.run(contents.get("words.txt"))["content"] == "plain"
    assert asyncio.run(contents.get("", content=True))["type"] == "directory"
