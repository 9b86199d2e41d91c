"""On the pages that most people open no sentence is longer than two lines."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    "README.md",
    "packages/multigpu/docs/linter.md",
    "packages/vgpu/docs/how-it-works.md",
    "packages/vgpu/docs/results.md",
    "packages/vgpu/docs/differential.md",
]
TWO_LINES = 240


def sentences(page: str) -> list[str]:
    """The sentences of a page as a reader sees them; a colon ends one. Programs, tables and headings have none."""
    page = re.sub(r"```.*?```|<!--.*?-->|^ {4}.*?$", "\n\n", page, flags=re.DOTALL | re.MULTILINE)
    page = re.sub(r"!?\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\([^)\s]*\)", r"\1", page)
    blocks = re.split(r"\n\s*\n|\n(?=\s*[*-] |\s*\||#)", page)
    prose = [" ".join(block.split()) for block in blocks if not block.lstrip().startswith(("|", "#"))]
    return [sentence for block in prose for sentence in re.split(r"(?<=[.:?!])[)*]*\s", block)]


@pytest.mark.parametrize("page", PAGES)
def test_no_sentence_is_longer_than_two_lines(page):
    found = sentences((ROOT / page).read_text(encoding="utf-8"))
    assert len(found) > 20
    assert [sentence for sentence in found if len(sentence) > TWO_LINES] == []


def test_a_sentence_that_is_longer_is_found_across_lines_and_links():
    page = f"Short.\n\n* {'long ' * 30}\n  [{'words ' * 20}](page.md) end\n* Short, too.\n"
    assert [len(sentence) > TWO_LINES for sentence in sentences(page)] == [False, True, False]
