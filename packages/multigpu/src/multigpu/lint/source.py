"""Read what is to be linted: Python files, notebooks, folders of both; and the comments that silence a rule."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

SILENCED = re.compile(r"#\s*noqa(?P<codes>\s*:\s*[A-Z]+\d+(?:[,\s]+[A-Z]+\d+)*)?", re.IGNORECASE)
WHOLE_FILE = re.compile(r"^#\s*multigpu:\s*noqa:(?P<codes>.*)$", re.MULTILINE)
MAGIC = re.compile(r"^\s*[%!?]|^\s*\w+\s*=\s*[%!]|\?\s*$")
PYTHON_CELL = re.compile(r"%%(time|timeit|capture|prun|memit|writefile)\b")
SKIPPED = {"__pycache__", "node_modules", "build", "dist", "site-packages"}


@dataclass(frozen=True)
class Source:
    """The code of a file. In a notebook it is that of all its cells, and `cells` says where each line comes from."""

    path: str
    text: str
    cells: tuple[tuple[int, int], ...] = ()  # (cell, line) of each line

    def place(self, line: int) -> tuple[int, int]:
        """The cell (0 in a plain file) and the line in it."""
        return self.cells[line - 1] if self.cells else (0, line)

    def silences(self, first: int, last: int, rule: str) -> bool:
        """Whether a comment means this rule: on the first or last line of the code, or one for the whole file."""
        if any(rule in codes for codes in self._silent_in_file):
            return True
        for number in {first, last}:
            comment = SILENCED.search(self._lines[number - 1]) if number <= len(self._lines) else None
            if comment and (comment["codes"] is None or rule in re.findall(r"[A-Z]+\d+", comment["codes"].upper())):
                return True
        return False

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def _silent_in_file(self) -> list[str]:
        return [comment["codes"] for comment in WHOLE_FILE.finditer(self.text)]


def find(given: str) -> Iterator[Path]:
    """The files of a path.

    Raises:
        ValueError: it does not exist, or is a file that is neither .py nor .ipynb.
    """
    path = Path(given)
    if path.is_dir():
        inside = (file for ending in ("*.py", "*.ipynb") for file in path.rglob(ending))
        yield from sorted(file for file in inside if file.is_file() and not _is_skipped(file.relative_to(path)))
    elif not path.exists():
        raise ValueError(f"no file or directory at {given}")
    elif path.suffix not in (".py", ".ipynb"):
        raise ValueError(f"{given} is neither a .py nor a .ipynb file")
    else:
        yield path


def _is_skipped(path: Path) -> bool:
    return any(part in SKIPPED or part.startswith(".") for part in path.parts)


def read(path: Path) -> Source:
    """The code of one file.

    Raises:
        ValueError: the file is not text, or not a notebook.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        text = path.read_text(encoding="latin-1")  # old files say so in their first line; every byte has a meaning
    if path.suffix == ".py":
        return Source(str(path), text)
    try:
        cells = [
            (number, "".join(cell.get("source", "")))
            for number, cell in enumerate(json.loads(text)["cells"], 1)
            if cell["cell_type"] == "code"
        ]
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not a notebook of format 4: {error!r}") from None
    lines, places = [], []
    for number, written in cells:
        code = written.splitlines()
        if code and code[0].startswith("%%") and not PYTHON_CELL.match(code[0]):
            continue  # another language
        for line, words in enumerate(code, 1):
            indent = words[: len(words) - len(words.lstrip())]
            lines.append(f"{indent}pass" if MAGIC.search(words) and "#" not in words else words)
            places.append((number, line))
    return Source(str(path), "\n".join(lines) + "\n", tuple(places))
