"""Notebook 00 is the map of the series: it leads to every other notebook."""

import re
from pathlib import Path

import pytest
from rules import Notebook

NOTEBOOKS = sorted((Path(__file__).resolve().parents[3]).glob("[0-9][0-9]_*.ipynb"))


@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if not path.name.startswith("00_")], ids=lambda p: p.stem)
def test_start_here_links_to_it(path):
    prose = "\n".join(text for _, text in Notebook.read(NOTEBOOKS[0]).prose)
    assert re.search(rf"\[{path.name[:2]} [^\]]+\]\({re.escape(path.name)}\)", prose), (
        f"00 does not link to {path.name}"
    )
