import json
from functools import cache
from pathlib import Path

import pytest
import table
from verdict import RULINGS

NOTEBOOKS = table.PAGE.parents[1] / "notebooks"


def test_page_is_in_step_with_the_proofs():
    assert table.PAGE.read_text(encoding="utf-8") == table.page(), "run: python notebooks/posts/verdicts/table.py"


def test_every_claim_is_judged_once():
    judged = [(row.post, row.place, row.claim) for row in table.verdicts()]
    assert judged and len(set(judged)) == len(judged)


def test_every_ruling_is_explained_and_counted_on_the_page():
    page, rows = table.page(), table.verdicts()
    assert "not tried" in RULINGS
    for ruling, meaning in RULINGS.items():
        assert f"| **{ruling}** | {meaning} |" in page and any(row.ruling == ruling for row in rows)
    total = sum(int(line.rstrip(" |").rpartition("| ")[2]) for line in page.splitlines() if line.startswith("| **"))
    assert total == len(rows)


def test_what_was_not_tried_says_so_and_nothing_else_does():
    """A claim about hardware or a runtime that was not run is not judged by what something else did."""
    for row in table.verdicts():
        if row.ruling == "not tried":
            assert "not run" in row.because or "none was measured" in row.because or "No version" in row.because


@pytest.mark.parametrize("row", [row for row in table.verdicts() if row.notebook], ids=lambda row: row.proof)
def test_the_notebook_that_is_named_shows_it(row):
    assert row.words and " ".join(row.words.split()) in sources(row.notebook)


def test_what_is_only_proved_names_no_place():
    """Nobody looks for words where no notebook is named, and the page has none there."""
    proved = [row for row in table.verdicts() if not row.notebook]
    assert proved and not any(row.words for row in proved)
    assert table.page().count("Proved by `") == len(proved)


@cache
def sources(name):
    cells = json.loads(Path(NOTEBOOKS, f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    return " ".join("\n".join("".join(cell["source"]) for cell in cells).split())
