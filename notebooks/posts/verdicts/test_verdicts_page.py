from pathlib import Path

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


def test_every_verdict_names_a_notebook_that_exists():
    missing = {row.notebook for row in table.verdicts() if row.notebook and not Path(NOTEBOOKS, f"{row.notebook}.ipynb").exists()}
    assert not missing
