from pathlib import Path

import table

NOTEBOOKS = table.PAGE.parents[1] / "notebooks"


def test_page_is_in_step_with_the_proofs():
    assert table.PAGE.read_text(encoding="utf-8") == table.page(), "run: python tests/verdicts/table.py"


def test_every_claim_is_judged_once():
    judged = [(row.post, row.place, row.claim) for row in table.verdicts()]
    assert judged and len(set(judged)) == len(judged)


def test_every_verdict_names_a_notebook_that_exists():
    missing = {row.notebook for row in table.verdicts() if not Path(NOTEBOOKS, f"{row.notebook}.ipynb").exists()}
    assert not missing
