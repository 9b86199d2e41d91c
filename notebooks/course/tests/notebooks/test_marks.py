"""A failure that is history, or that is acted out, says so where a notebook tells of it."""

import re
from pathlib import Path

import nbformat
import pytest

from multigpu.failures import catalogue

NOTEBOOKS = Path(__file__).resolve().parents[3]
MARKED = [entry for entry in catalogue() if entry.mark != "today" and entry.notebook]


def prose(number, heading):
    """The prose of one section, from its heading to the next of the same level."""
    (path,) = NOTEBOOKS.glob(f"{number}_*.ipynb")
    text = "\n".join(c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "markdown")
    return re.split(r"^#{2,3} ", text.split(f"# {heading}\n", 1)[1], flags=re.MULTILINE)[0]


@pytest.mark.parametrize("entry", MARKED, ids=[entry.id for entry in MARKED])
def test_the_section_says_so(entry):
    assert re.search(rf"\*{entry.mark}\W?\*", prose(entry.notebook, entry.section), re.IGNORECASE)
