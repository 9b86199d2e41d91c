"""A notebook that was read in an editor which saves everything, answers and widgets included, still passes nbval."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook, new_output

from course.kit.live import WIDGET_VIEW, still_outputs

ROOT = Path(__file__).resolve().parents[4]
CELLS = [
    "from course.kit import figures, learn\nfrom course.tools.failures_search import search",
    "learn.predict('99.rows', 'How many of `10` rows?', [10, 5])",
    "learn.reveal('99.rows', 5)",
    "figures.sliders(lambda rows: figures.Canvas(10, 10, 'Rows', f'{rows} rows').figure(), rows=(1, 9, 3))",
    "search()",
]
BAR = "from tqdm.auto import tqdm\n\nfor _ in tqdm(range(3), desc='train', unit='step'):\n    print('step')"


def read_live(notebook, folder, monkeypatch):
    """Run a notebook as a reader does who has answered before; the outputs are as a kernel sent them."""
    kept = folder / "frcnn_lite" / "learn.json"
    kept.parent.mkdir()
    kept.write_text(json.dumps({"predictions": {"99.rows": "10"}}))
    for name in ("XDG_STATE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.setenv("FRCNN_LITE_LEARN", "on")
    NotebookClient(notebook, kernel_name="python3", timeout=300, store_widget_state=False).execute()
    return notebook


@pytest.mark.exhaustive
def test_a_notebook_saved_with_its_live_outputs_passes_nbval(tmp_path, monkeypatch):
    notebook = read_live(new_notebook(cells=[new_code_cell(source) for source in CELLS]), tmp_path, monkeypatch)
    saved = json.dumps(notebook)
    assert "You predicted 10" in saved and saved.count(WIDGET_VIEW) == 3
    nbformat.write(notebook, tmp_path / "read.ipynb")
    for name in ("conftest.py", "notebooks/course/tests/notebooks/nbval_sanitize.cfg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    command = [sys.executable, "-m", "pytest", "-q", "--nbval", "-p", "no:cacheprovider", "read.ipynb"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    judged = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert judged.returncode == 0, judged.stdout


def test_nothing_stays_of_a_progress_bar(tmp_path, monkeypatch):
    notebook = read_live(new_notebook(cells=[new_code_cell(BAR)]), tmp_path, monkeypatch)
    outputs = notebook.cells[0].outputs
    assert WIDGET_VIEW in json.dumps(outputs)
    (told,) = still_outputs(outputs)
    assert told.text == "step\n" * 3


def test_a_live_output_is_replaced_by_the_twin_it_names():
    live = {"output_type": "display_data", "data": {"text/plain": "You predicted 5"}}
    twin = {"text/plain": "Outcome: 5"}
    named = {**live, "metadata": {"frcnn_lite": {"still": twin}}}
    assert still_outputs([named]) == [{**live, "data": twin, "metadata": {}}]
    assert named["data"] == live["data"], "the output that was passed is changed"
    assert still_outputs([{**live, "metadata": {"frcnn_lite": {"still": None}}}]) == []
    assert still_outputs([{**live, "metadata": {}}]) == [{**live, "metadata": {}}]


def test_a_widget_without_a_twin_leaves_its_words():
    view = {WIDGET_VIEW: {"model_id": "5f3c"}, "text/plain": ["Live in JupyterLab: ", "sliders."]}
    (output,) = still_outputs([new_output("display_data", data=view)])
    assert list(output.data) == ["text/plain"]


def test_streams_are_joined_whatever_form_their_text_has():
    streams = [
        {"output_type": "stream", "name": "stdout", "text": ["a\n", "b\n"]},
        {"output_type": "stream", "name": "stderr", "text": "oh\n"},
        {"output_type": "stream", "name": "stdout", "text": "c\n"},
    ]
    assert [output["text"] for output in still_outputs(streams)] == ["a\nb\nc\n", "oh\n"]
