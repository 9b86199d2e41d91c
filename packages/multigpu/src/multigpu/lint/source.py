"""Read Python files, notebooks and folders of both, with the comments that silence a rule."""

import ast
import json
import os
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

SILENCED = re.compile(r"#\s*noqa(?P<codes>\s*:\s*[A-Z]+\d+(?:[,\s]+[A-Z]+\d+)*)?", re.IGNORECASE)
WHOLE_FILE = re.compile(r"^#\s*multigpu:\s*noqa:(?P<codes>.*)$", re.MULTILINE)
MAGIC = re.compile(r"^\s*[%!?]|^\s*\w+\s*=\s*[%!]|\?\s*$")
PYTHON_CELL = re.compile(r"%%(time|timeit|capture|prun|memit|writefile)\b")
LINE_END = re.compile(r"\r\n?|\n")  # of Python's code; str.splitlines() would also end lines at form feeds
UNPARSED = (SyntaxError, ValueError, RecursionError, MemoryError)  # the last two if code is nested too deeply
SKIPPED = {"__pycache__", "node_modules", "build", "dist", "site-packages"}


@dataclass(frozen=True)
class Source:
    """The code of a file. That of a notebook is the code of all its cells, and `cells` has the place of each line."""

    path: str
    text: str
    cells: tuple[tuple[int, int], ...] = ()  # (cell, line) of each line

    def place(self, line: int) -> tuple[int, int]:
        """The cell (0 in a plain file) and the line in it."""
        return self.cells[line - 1] if self.cells else (0, line)

    def silences(self, first: int, last: int, rule: str) -> bool:
        """Whether a comment silences a rule: on the first or last line of the code, or one for the whole file."""
        if any(rule in codes for codes in self._silent_in_file):
            return True
        return any({rule, ""} & self._silent.get(line, set()) for line in (first, last))

    @cached_property
    def _silent(self) -> dict[int, set[str]]:
        """The lines with a comment, and the rules that it names; "" if it means all."""
        comments = ((number, SILENCED.search(line)) for number, line in enumerate(lines_of(self.text), 1))
        return {
            number: set(re.findall(r"[A-Z]+\d+", comment["codes"].upper())) if comment["codes"] else {""}
            for number, comment in comments
            if comment
        }

    @cached_property
    def _silent_in_file(self) -> list[str]:
        return [comment["codes"] for comment in WHOLE_FILE.finditer(self.text)]


def lines_of(text: str) -> list[str]:
    """The lines of Python code, as Python counts them."""
    return LINE_END.split(text.removesuffix("\n")) if text else []


def parse(text: str | bytes) -> ast.Module:
    """Code as a tree. The parts of an f-string get the place of the string, since Python 3.11 gives them a wrong one.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it is not Python, or is nested too deeply.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as those about a backslash in a string
        tree = ast.parse(text)
    for string in ast.walk(tree):
        if isinstance(string, ast.JoinedStr):
            for part in ast.walk(string):
                ast.copy_location(part, string)
    return tree


def find(given: str, unread: Callable[[OSError], None] | None = None) -> Iterator[Path]:
    """The files of a path; `unread` is called with the error of a folder in it that cannot be read.

    Raises:
        ValueError: it does not exist, or is a file that is neither .py nor .ipynb.
    """
    path = Path(given)
    if path.is_dir():
        yield from sorted(_inside(path, unread))
    elif not path.exists():
        raise ValueError(f"no file or directory at {given}")
    elif not path.is_file():
        raise ValueError(f"{given} is neither a file nor a folder")
    elif path.suffix not in (".py", ".ipynb"):
        raise ValueError(f"{given} is neither a .py nor a .ipynb file")
    else:
        yield path


def _inside(path: Path, unread: Callable[[OSError], None] | None) -> Iterator[Path]:
    for folder, folders, files in os.walk(path, onerror=unread):
        folders[:] = [name for name in folders if not _is_skipped(name)]
        inside = (Path(folder, name) for name in files if name.endswith((".py", ".ipynb")) and not _is_skipped(name))
        yield from filter(os.path.isfile, inside)  # reading a pipe would wait for ever


def _is_skipped(name: str) -> bool:
    return name in SKIPPED or name.startswith(".")


def read(path: Path) -> Source:
    """The code of one file.

    Raises:
        ValueError: the file is not text, or not a notebook.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        text = path.read_text(encoding="latin-1")  # an old file; in this encoding every byte is a letter
    if path.suffix == ".py":
        return Source(str(path), text)
    try:
        cells = [
            (number, "".join(cell.get("source", "")))
            for number, cell in enumerate(json.loads(text)["cells"], 1)
            if cell["cell_type"] == "code"
        ]
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} is not a notebook of format 4: {error!r}") from None
    lines, places = [], []
    for number, written in cells:
        code = lines_of(written)
        if code and code[0].startswith("%%") and not PYTHON_CELL.match(code[0]):
            continue  # another language
        for line, words in enumerate(code, 1):
            indent = words[: len(words) - len(words.lstrip())]
            lines.append(f"{indent}pass" if MAGIC.search(words) and "#" not in words else words)
            places.append((number, line))
    return Source(str(path), "\n".join(lines) + "\n", tuple(places))
