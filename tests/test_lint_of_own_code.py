"""The linter of multigpu on the code of this repository."""

import re
from pathlib import Path

from multigpu.lint import lint, source

ROOT = Path(__file__).resolve().parents[1]
FOUND = [path for room in ("frcnn_lite", "notebooks/course") for path in source.find(str(ROOT / room))]
# Wrong answers of puzzles are what the linter looks for, and the program of the capstone has no word beside its lines.
LEFT_OUT = {"tests", "puzzles", "detector.py"}
FILES = [path for path in FOUND if not LEFT_OUT & {*path.parts} and not path.name.startswith("test_")]


def test_our_own_code_is_clean():
    findings = [finding for path in FILES for finding in lint(source.read(path))]
    assert [f"{finding.where} {finding.rule}" for finding in findings] == []


def test_silences_say_why():
    for path in FILES:
        for line in path.read_text(encoding="utf-8").splitlines():
            if re.search(r"# (multigpu: )?noqa: FL\d", line) and path.parent.name != "lint":
                assert re.search(r"FL\d{3} +[a-z]", line), f"{path.name}: {line.strip()}"
