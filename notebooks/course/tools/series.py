"""The map of the series in notebook 00: every notebook with its sentence and minutes, and what the reader has done.

    python -m course series     # writes the map into notebooks/00_start_here.ipynb anew

It is read from the notebooks. The table is markdown, so that its links work on GitHub and in copies; the tiles are the
output of a cell. Both are written without running the notebook.
"""

from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course.kit.files import NOTEBOOKS
from course.kit.learn.card import Card
from course.tools.generated import write_or_check
from course.tools.lesson import Lesson, read_series
from course.tools.reading_order import PARTS, part_of
from course.tools.store import as_text, normal_form
from course.tools.tiles import tiles

MAP = "## The map"
TILES = "series.progress()"


def table(lessons: list[Lesson]) -> str:
    """The map as one markdown cell: a table for each part, all but the first folded."""
    lines = [
        MAP,
        "",
        "Open a part to see its notebooks. A number that is missing is that of a notebook still to be written.",
    ]
    for start, name in PARTS.items():
        members = [lesson for lesson in lessons if part_of(lesson.number) == start]
        if not members:
            continue
        minutes = f"({sum(lesson.minutes for lesson in members)} minutes)"
        folded = start != min(PARTS)
        lines += ["", f"<details><summary><b>{name}</b> {minutes}</summary>" if folded else f"**{name}** {minutes}", ""]
        lines += ["| notebook | after it you can fix | minutes |", "|---|---|---|"]
        lines += [f"| [{x.number} {x.title}]({x.file}) | {x.fixes} | {x.minutes} |" for x in members]
        lines += ["", "</details>"] if folded else []
    return "\n".join(lines)


def progress(folder: Path = NOTEBOOKS) -> Card:
    """A tile for each notebook, with what the reader has done of it."""
    return tiles(read_series(folder))


def with_map(notebook: NotebookNode, folder: Path = NOTEBOOKS) -> NotebookNode:
    """Notebook 00 with the map as the notebooks of `folder` have it now: the table, and the tiles."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and cell.source.startswith(MAP):
            cell.source = table(read_series(folder))
        elif cell.cell_type == "code" and cell.source.rstrip().endswith(TILES):
            for output in cell.outputs:
                output.data = nbformat.from_dict(progress(folder)._repr_mimebundle_())
    return normal_form(notebook)


def files() -> dict[Path, str]:
    """Notebook 00 with the map of today, as text."""
    start = NOTEBOOKS / "00_start_here.ipynb"
    return {start: as_text(with_map(nbformat.read(start, as_version=4)))}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or say under --check which are out of date."""
    return write_or_check("series", __doc__, files, arguments)
