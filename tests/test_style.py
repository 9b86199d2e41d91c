"""Format, lint and types, as `make lint` runs them: clean is a state that a test keeps."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("tool", [("ruff", "format", "--check"), ("ruff", "check"), ("mypy",)], ids=" ".join)
def test_tree_is_clean(tool):
    if importlib.util.find_spec(tool[0]) is None:
        pytest.skip(f"{tool[0]} is not installed")
    paths = () if tool[0] == "mypy" else (".",)  # mypy reads its paths from pyproject.toml
    found = subprocess.run([sys.executable, "-m", *tool, *paths], cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
