"""The map of the series in notebook 00: every notebook with its sentence and minutes, and what it builds on, drawn.

    python -m course series     # writes the map into notebooks/00_start_here.ipynb anew

It is read from the first cell of each notebook. The table is markdown, so that its links work on GitHub and in copies;
the drawing is the output of a cell. Both are written without running the notebook.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course.kit.figures.prerequisites import prerequisites
from course.kit.figures.svg import Figure
from course.kit.files import NOTEBOOKS
from course.tools.generated import write_or_check
from course.tools.reading_order import PARTS, part_of, paths
from course.tools.store import as_text, normal_form

MAP = "## The map"
DRAWING = "series.draw()"
PROMISE = r"^\*After this notebook you can fix\* (.+?)\.?\s*$"


@dataclass(frozen=True)
class Lesson:
    """What the first cell of a notebook says of it. `needs` are the numbers of its prerequisites."""

    file: str
    title: str
    fixes: str
    minutes: int
    needs: tuple[str, ...]

    @property
    def number(self) -> str:
        return self.file[:2]


def read_lesson(path: Path) -> Lesson:
    """A notebook's title, promise, minutes and prerequisites.

    Raises ValueError, with the name of the file, where its first cell lacks one of them.
    """
    top = nbformat.read(path, as_version=4).cells[0].source

    def find(what: str, form: str) -> str:
        match = re.search(form, top, re.MULTILINE)
        if match is None:
            raise ValueError(f"the first cell of {path.name} must have {what}")
        return match[1]

    needed = find("a line '**Prerequisites:**'", r"^\*\*Prerequisites:\*\* *(.+)$")
    return Lesson(
        file=path.name,
        title=find(f"a title '# {path.name[:2]} · ...'", rf"\A# {path.name[:2]} · (.+)$"),
        fixes=find("a line '*After this notebook you can fix* ...'", PROMISE),
        minutes=int(find("a line '**Minutes:**' with a whole number", r"^\*\*Minutes:\*\* +(\d+)")),
        needs=tuple(re.findall(r"\]\((\d\d)_\w+\.ipynb\)", needed)),
    )


def read_series(folder: Path = NOTEBOOKS) -> list[Lesson]:
    """What the first cells of all notebooks of a folder say, in reading order."""
    return [read_lesson(path) for path in paths(folder)]


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


def draw(folder: Path = NOTEBOOKS) -> Figure:
    """What each notebook builds on."""
    lessons = read_series(folder)
    return prerequisites({x.number: x.title for x in lessons}, {x.number: x.needs for x in lessons})


def with_map(notebook: NotebookNode, folder: Path = NOTEBOOKS) -> NotebookNode:
    """Notebook 00 with the map as the notebooks of `folder` have it now: the table, and the output of the drawing."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and cell.source.startswith(MAP):
            cell.source = table(read_series(folder))
        elif cell.cell_type == "code" and cell.source.rstrip().endswith(DRAWING):
            for output in cell.outputs:
                output.data = nbformat.from_dict(draw(folder)._repr_mimebundle_())
    return normal_form(notebook)


def files() -> dict[Path, str]:
    """Notebook 00 with the map of today, as text."""
    start = NOTEBOOKS / "00_start_here.ipynb"
    return {start: as_text(with_map(nbformat.read(start, as_version=4)))}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or say under --check which are out of date."""
    return write_or_check("series", __doc__, files, arguments)
