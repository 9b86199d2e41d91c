"""A stored notebook as the rules look at it: its prose, its code, and what a reader sees below each cell."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course.tools.links import is_bootstrap


@dataclass(frozen=True)
class Notebook:
    """A stored notebook: where it lies, and its bytes."""

    path: Path
    text: str

    @classmethod
    def read(cls, path: Path) -> "Notebook":
        return cls(path, path.read_text(encoding="utf-8"))

    @cached_property
    def node(self) -> NotebookNode:
        """The notebook without the cell that `make links` writes, which is not of the course."""
        node = nbformat.reads(self.text, as_version=4)
        node.cells = [cell for cell in node.cells if not is_bootstrap(cell)]
        return node

    @property
    def number(self) -> str:
        return self.path.name[:2]

    @property
    def code(self) -> list[tuple[int, NotebookNode]]:
        """Position, from 0, and cell."""
        return [(k, cell) for k, cell in enumerate(self.node.cells) if cell.cell_type == "code"]

    @property
    def prose(self) -> list[tuple[int, str]]:
        return [(k, cell.source) for k, cell in enumerate(self.node.cells) if cell.cell_type == "markdown"]

    def tagged(self, tag: str) -> list[int]:
        return [k for k, cell in self.code if tag in cell.metadata.get("tags", [])]

    def shown(self) -> Iterator[tuple[int, str]]:
        """Every text that a reader sees below a cell; bitmaps inside an SVG are left out."""
        for k, cell in self.code:
            for output in cell.outputs:
                texts = [output.get("text", ""), output.get("evalue", ""), *output.get("traceback", [])]
                texts += [text for mime, text in output.get("data", {}).items() if not mime.startswith("image/p")]
                yield from ((k, re.sub(r'data:[^"\')]+', "", str(text))) for text in texts)


def calls(source: str, name: str) -> Iterator[ast.Call]:
    """Calls of a function by the last part of its name; a cell that is no plain Python (a magic) has none."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == name:
            yield node


def keys(notebook: Notebook, function: str) -> list[tuple[int, str]]:
    """Where a function of learn is called, and its first argument."""
    found = [(k, call) for k, cell in notebook.code for call in calls(cell.source, function) if call.args]
    return [(k, ast.literal_eval(call.args[0])) for k, call in found if isinstance(call.args[0], ast.Constant)]


def sections(notebook: Notebook) -> dict[str, str]:
    """Text below each level-2 heading, the last of a name winning."""
    prose = "\n\n".join(without_code(text) for _, text in notebook.prose)
    parts = re.split(r"^## +(.+?) *$", prose, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def items(text: str, mark: str) -> list[str]:
    """The entries of a list whose items start with `mark`, a regular expression."""
    return re.findall(rf"^ {{0,3}}(?:{mark})[ \t]+(\S.*)$", text, flags=re.MULTILINE)


def without_code(text: str) -> str:
    """Markdown without its fenced blocks and code spans."""
    return re.sub(r"```.*?```|`[^`\n]*`", "`code`", text, flags=re.DOTALL)
