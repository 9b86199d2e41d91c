"""Notebook 00 is the map of the series: it leads to every other notebook, and says of each what its first cell says."""

import re
import shutil

import nbformat
import pytest
from rules import Notebook

from course.tools import series
from course.tools.lesson import read_series
from course.tools.reading_order import PARTS, paths
from course.tools.store import normal_form

NOTEBOOKS = paths()
START = NOTEBOOKS[0]


@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if not path.name.startswith("00_")], ids=lambda p: p.stem)
def test_start_here_links_to_it(path):
    prose = "\n".join(text for _, text in Notebook.read(NOTEBOOKS[0]).prose)
    assert re.search(rf"\[{path.name[:2]} [^\]]+\]\({re.escape(path.name)}\)", prose), (
        f"00 does not link to {path.name}"
    )


def test_the_stored_map_is_what_the_notebooks_say_today():
    stored = normal_form(nbformat.read(START, 4))
    written = series.with_map(nbformat.read(START, 4))
    assert written == stored, "the map in 00 is old: run `python -m course series` in notebooks/"
    tables = [cell.source for cell in stored.cells if cell.source.startswith(series.MAP)]
    tiles = [cell.outputs for cell in stored.cells if cell.source.rstrip().endswith(series.TILES)]
    assert len(tables) == 1 and [len(outputs) for outputs in tiles] == [1]


def test_every_notebook_stands_in_one_part_with_its_sentence_and_minutes():
    lessons = read_series()
    lines = series.table(lessons).splitlines()
    assert [lesson.file for lesson in lessons] == [path.name for path in NOTEBOOKS]
    for lesson in lessons:
        row = f"| [{lesson.number} {lesson.title}]({lesson.file}) | {lesson.fixes} | {lesson.minutes} |"
        assert lines.count(row) == 1
    assert lines.count("</details>") == sum("<details>" in line for line in lines) == len(PARTS) - 1
    assert sum(int(found) for found in re.findall(r"\((\d+) minutes\)", "\n".join(lines))) == sum(
        lesson.minutes for lesson in lessons
    )


def test_a_change_in_a_first_cell_reaches_the_map(tmp_path):
    for path in NOTEBOOKS[:4]:
        shutil.copy(path, tmp_path)
    changed = tmp_path / NOTEBOOKS[2].name
    changed.write_text(
        re.sub(r"(\*\*Minutes:\*\* )\d+", r"\g<1>987", changed.read_text(encoding="utf-8")), encoding="utf-8"
    )
    start = series.with_map(nbformat.read(START, 4), tmp_path)
    (table,) = [cell.source for cell in start.cells if cell.source.startswith(series.MAP)]
    assert table.count("| 987 |") == 1 and "Two:" not in table
    (tiles,) = [cell.outputs[0].data for cell in start.cells if cell.source.rstrip().endswith(series.TILES)]
    assert "987 min" in tiles["text/html"] and tiles["text/html"].count("<small>") == 4
    exercises = sum(len(lesson.exercises) for lesson in read_series(tmp_path))
    assert tiles["text/plain"].startswith(
        f"0 of {exercises} exercises solved, in 4 notebooks; go on with 00 Start here"
    )


def test_a_first_cell_that_says_too_little_is_named(tmp_path):
    path = tmp_path / START.name
    path.write_text(START.read_text(encoding="utf-8").replace("**Minutes:**", "**Hours:**"), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"the first cell of {START.name} must have a line '..Minutes:"):
        read_series(tmp_path)
