"""What a notebook says of itself: its first cell, its questions and its exercises."""

import re
from dataclasses import dataclass
from pathlib import Path

import nbformat

from course.kit.files import NOTEBOOKS
from course.tools.reading_order import paths

PROMISE = r"^\*After this notebook you can fix\* (.+?)\.?\s*$"


@dataclass(frozen=True)
class Lesson:
    """A notebook. Its `questions` and `exercises` are keys, such as "00.rows"."""

    file: str
    title: str
    fixes: str
    minutes: int
    questions: tuple[str, ...]
    exercises: tuple[str, ...]

    @property
    def number(self) -> str:
        return self.file[:2]


def read_lesson(path: Path) -> Lesson:
    """A notebook's title, promise and minutes, and what it asks.

    Raises ValueError, with the name of the file, where its first cell lacks something.
    """
    cells = nbformat.read(path, as_version=4).cells
    top = cells[0].source
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")

    def find(what: str, form: str) -> str:
        match = re.search(form, top, re.MULTILINE)
        if match is None:
            raise ValueError(f"the first cell of {path.name} must have {what}")
        return match[1]

    return Lesson(
        file=path.name,
        title=find(f"a title '# {path.name[:2]} · ...'", rf"\A# {path.name[:2]} · (.+)$"),
        fixes=find("a line '*After this notebook you can fix* ...'", PROMISE),
        minutes=int(find("a line '**Minutes:**' with a whole number", r"^\*\*Minutes:\*\* +(\d+)")),
        questions=tuple(re.findall(r'learn\.predict\("([\w.]+)"', code)),
        exercises=tuple(re.findall(r'learn\.check\("([\w.]+)"', code)),
    )


def read_series(folder: Path = NOTEBOOKS) -> list[Lesson]:
    """All notebooks of a folder, in reading order."""
    return [read_lesson(path) for path in paths(folder)]
