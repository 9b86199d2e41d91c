"""`make notebooks`: one normal form, the same on every run, that strict nbval accepts."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course.tools import store as notebooks

ROOT = Path(__file__).resolve().parents[3]


def code(source, *tags):
    return new_code_cell(source, metadata={"tags": list(tags), "trusted": True, "execution": {"started": "today"}})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks, "NOTEBOOKS", tmp_path)
    return tmp_path


def store(path, *cells):
    nbformat.write(
        new_notebook(cells=list(cells), metadata={"kernelspec": {"name": "mine", "display_name": "Mine"}}), path
    )
    return path


@pytest.fixture
def lesson(folder):
    """A notebook that does what notebooks of the series do."""
    return store(
        folder / "01_lesson.ipynb",
        new_markdown_cell("# 01 · Lesson"),
        code("import os, sys\nprint(os.environ['FRCNN_LITE_DEVICES'])\nprint('flushed', flush=True)\nprint('after')"),
        code("1 + 1"),
        code("raise ValueError('rows are lost')", "raises-exception"),
        code("import ipywidgets\nipywidgets.IntSlider(3)", "widget"),
    )


def test_stored_form_is_normal_idempotent_and_passes_strict_nbval(folder, lesson, capsys):
    assert notebooks.main([]) == 0
    first = lesson.read_bytes()
    stored = nbformat.read(lesson, as_version=4)
    nbformat.validate(stored)
    cells = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == [1, 2, 3, 4]
    assert cells[0].outputs == [new_output("stream", name="stdout", text="virtual\nflushed\nafter\n")]
    assert cells[2].outputs[0].traceback == ["ValueError: rows are lost"]
    assert list(cells[3].outputs[0].data) == ["text/plain"]
    assert stored.metadata == notebooks.METADATA
    assert all(set(cell.metadata) <= {"tags"} for cell in stored.cells)
    assert first.endswith(b"}\n") and b"\r" not in first

    assert notebooks.main(["--check"]) == 0
    assert notebooks.main(["01"]) == 0
    assert lesson.read_bytes() == first
    assert "up to date" in capsys.readouterr().out
    command = [sys.executable, "-m", "pytest", "-q", "--nbval", "--nbval-current-env", "-p", "no:cacheprovider"]
    judged = subprocess.run(
        [*command, "-c", ROOT / "pyproject.toml", lesson],
        capture_output=True,
        text=True,
        env={**notebooks.os.environ, "FRCNN_LITE_DEVICES": "virtual"},
    )
    assert judged.returncode == 0, judged.stdout


def test_check_finds_a_stale_output_and_writes_nothing(folder, capsys):
    path = store(folder / "01_lesson.ipynb", code("1 + 1"), code("2 + 2"))
    notebooks.main([])
    edited = path.read_text().replace('"4"', '"5"')
    path.write_text(edited)
    assert notebooks.main(["--check"]) == 1
    assert "STALE in cells 1 " in capsys.readouterr().out
    assert path.read_text() == edited


def test_failing_notebook_is_named_and_left_alone_and_the_next_one_runs(folder, capsys):
    bad = store(folder / "01_bad.ipynb", code("raise RuntimeError('no such device')"))
    store(folder / "02_good.ipynb", code("print('fine')"))
    before = bad.read_bytes()
    assert notebooks.main([]) == 1
    printed = capsys.readouterr().out
    assert "01_bad: FAILED" in printed and "no such device" in printed and "02_good: stored" in printed
    assert bad.read_bytes() == before


@pytest.mark.parametrize("name", ["02", "02_scatter", "02_scatter.ipynb", "notebooks/02_scatter.ipynb"])
def test_a_notebook_can_be_named_in_several_ways(folder, name):
    for stem in ("00_start_here", "02_scatter", "02b"):
        (folder / f"{stem}.ipynb").touch()
    assert [path.stem for path in notebooks.find([name])] == ["02_scatter"]


def test_unknown_name_lists_what_there_is(folder, capsys):
    (folder / "02_scatter.ipynb").touch()
    assert notebooks.main(["03"]) == 2
    assert "no notebook is called '03'; there are 02_scatter" in capsys.readouterr().err


def test_cell_ids_survive_a_round_trip_and_never_collide():
    cells = [new_code_cell("x = 1"), new_code_cell("x = 1"), new_markdown_cell("x = 1")]
    first = [cell.id for cell in notebooks.normal_form(new_notebook(cells=cells)).cells]
    again = [cell.id for cell in notebooks.normal_form(new_notebook(cells=[new_code_cell("x = 1"), *cells[1:]])).cells]
    assert len(set(first)) == 3
    assert first == again


@pytest.mark.parametrize("tag", ["predict", "solution"])
def test_the_source_of_a_question_or_a_solution_is_stored_hidden(tag):
    asked, other = code("1", tag, "mine"), code("2", "exercise")
    asked.metadata["jupyter"] = {"outputs_hidden": False}
    kept = notebooks.normal_form(new_notebook(cells=[asked, other])).cells
    assert kept[0].metadata == {"tags": [tag, "mine"], "jupyter": {"outputs_hidden": False, "source_hidden": True}}
    assert kept[1].metadata == {"tags": ["exercise"]}


def test_bitmaps_do_not_make_a_notebook_stale():
    def figure(pixels, text):
        output = new_output("display_data", data={"image/png": pixels, "text/plain": text})
        return new_notebook(cells=[new_code_cell("draw()", outputs=[output], execution_count=1)])

    assert notebooks.stale_cells(figure("aaaa", "<Figure>"), figure("bbbb", "<Figure>")) == []
    assert notebooks.stale_cells(figure("aaaa", "<Figure>"), figure("aaaa", "<Figure 2>")) == [0]
