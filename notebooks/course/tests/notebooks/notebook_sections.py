"""The sections of a notebook as a reader meets them: prose, code and outputs under a heading, in units."""

import html
import json
import re
from functools import cache
from pathlib import Path


@cache
def sections(notebook: Path) -> dict[str, tuple[str, ...]]:
    """Heading (level 2 or deeper) -> what stands under it, in order, each unit's white space made single blanks.

    A unit is a paragraph or a list item of prose, a cell of code, or one output. A section holds its subsections.
    """
    found: dict[str, list[str]] = {}
    path: list[tuple[int, str]] = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            for unit in _paragraphs(source):
                title = re.match(r"(#+) (.*)", unit)
                if title:
                    path = [entry for entry in path if entry[0] < len(title[1])] + [(len(title[1]), title[2].strip())]
                _add(found, path, unit)
        else:
            for unit in (source, *map(_text, cell.get("outputs", []))):
                _add(found, path, unit)
    return {heading: tuple(units) for heading, units in found.items()}


def _add(found: dict[str, list[str]], path: list[tuple[int, str]], unit: str) -> None:
    plain = " ".join(unit.split())
    for level, heading in path:
        if level > 1 and plain:
            found.setdefault(heading, []).append(plain)


def _paragraphs(source: str) -> list[str]:
    """Blocks between blank lines; headings and list items are blocks of their own."""
    return [block for block in re.split(r"\n\s*\n|\n(?=- |\d+\. |#+ |\| )|(?<=^)(?=#+ )", source) if block.strip()]


def _text(output: dict) -> str:
    """What an output says: its stream, its error, or the text of its HTML (folded sources are read, too)."""
    data = output.get("data", {})
    marked = re.sub(r"<[^>]+>", " ", "".join(data.get("text/html", "")))
    said = [output.get("text", ""), output.get("evalue", ""), data.get("text/plain", ""), html.unescape(marked)]
    return "\n".join("".join(part) for part in said)
