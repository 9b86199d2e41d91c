"""Cells that a reader runs twice, or after later ones, show what they showed: nothing is lost, nothing piles up.

Part one is run; the rule `names_kept` reads all notebooks, and finds the commoner half of such faults.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output, writes

HERE = Path(__file__).resolve().parent
NOTEBOOKS = HERE.parents[2]
PART_ONE = sorted(NOTEBOOKS.glob("0[0-5]_*.ipynb"))  # 06 shows what is alive, which depends on what has run before


def run_again(*paths):
    """Path -> what is different when its cells are run again."""
    command = [sys.executable, str(HERE / "run_again.py"), *map(str, paths)]
    ran = subprocess.run(command, cwd=NOTEBOOKS, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return {Path(path): found for path, found in json.loads(ran.stdout).items()}


@pytest.fixture(scope="module")
def differences():
    return run_again(*PART_ONE)


def test_six_notebooks_of_part_one_are_run():
    assert [path.name[:2] for path in PART_ONE] == [f"{number:02}" for number in range(6)]


@pytest.mark.parametrize("path", PART_ONE, ids=lambda path: path.stem)
@pytest.mark.long
def test_cells_show_the_same_when_they_are_run_again(path, differences):
    assert differences[path] == []


@pytest.mark.exhaustive
def test_what_a_second_run_changes_is_found(tmp_path):
    cells = [
        ("seen = []", ""),
        ("seen.append(1)\nprint(len(seen))", "1\n"),
        ("name = 'first'", ""),
        ("print(name)", "first\n"),
        ("name = 'second'\n_ = seen.pop()", ""),
    ]
    node = new_notebook()
    for source, text in cells:
        outputs = [new_output("stream", name="stdout", text=text)] if text else []
        node.cells.append(new_code_cell(source, outputs=outputs))
    path = tmp_path / "bad.ipynb"
    path.write_text(writes(node), encoding="utf-8")
    assert run_again(path)[path] == [
        "cell 1, run twice, stdout: ['2\\n'] and not ['1\\n']",
        "cell 4, run after the later ones, ename: ['IndexError'] and not None",
        "cell 4, run after the later ones, evalue: ['pop from empty list'] and not None",
        "cell 3, run after the later ones, stdout: ['second\\n'] and not ['first\\n']",
    ]
