"""Every notebook keeps every rule of docs/adding-a-notebook.md."""

from pathlib import Path

import pytest
from nbval.plugin import get_sanitize_patterns
from rules import ANYWHERE, LESSON, Notebook

ROOT = Path(__file__).resolve().parents[4]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
GENERATED = {"failures", "puzzles"}  # made by a tool, and no lessons
KEPT = [
    pytest.param(path, rule, id=f"{path.stem}-{rule.__name__}")
    for path in NOTEBOOKS
    for rule in (ANYWHERE if path.stem in GENERATED else LESSON + ANYWHERE)
]


@pytest.mark.parametrize(("path", "rule"), KEPT)
def test_notebook_keeps_the_rule(path, rule):
    faults = rule(Notebook.read(path))
    assert not faults, "\n".join(["", *faults])


def test_numbers_are_used_once():
    numbers = [path.name[:2] for path in NOTEBOOKS if path.stem not in GENERATED]
    assert len(set(numbers)) == len(numbers)


def test_nbval_reads_every_sanitising_rule():
    """It drops a rule without a word when the space after "replace:" is missing."""
    text = (Path(__file__).parent / "nbval_sanitize.cfg").read_text(encoding="utf-8")
    written = [line for line in text.splitlines() if line.startswith("regex:")]
    read = get_sanitize_patterns(text)
    assert len(read) == len(written) == len({regex for regex, _ in read}) > 0
