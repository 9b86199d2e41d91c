"""The programs of the README print what their comments say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import vgpu

README = Path(__file__).resolve().parents[1] / "README.md"


PROGRAMS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_program_prints_its_comment(program, tmp_path):
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run([sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True, timeout=600)
    (expected,) = re.findall(r"print\(.*#\s*(.*)$", program, re.MULTILINE)
    assert done.stdout.strip() == expected, done.stderr


def test_every_public_name_is_listed_and_exists():
    text = README.read_text(encoding="utf-8")
    assert set(re.findall(r"`vgpu\.(\w+)(?:\([^`]*\))?`", text)) == set(vgpu.__all__)
    assert [name for name in vgpu.__all__ if not callable(getattr(vgpu, name))] == []
    assert {*vgpu.__all__, "__version__"} == set(dir(vgpu))
