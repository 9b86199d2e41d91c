"""The programs of the posts: each is used where their README says so, and prints what it says there."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from course.lessons.nb17 import without_gpu

POSTS = Path(__file__).resolve().parents[1]
ROWS = [
    (name, used_by, prints)
    for row in (POSTS / "README.md").read_text(encoding="utf-8").splitlines()
    if row.startswith("| `0")
    for files, _, _, used_by, prints in [row.strip("| ").split(" | ")]
    for name in re.findall(r"`(.+?)`", files)
]


def run(gpus: int, *command: str) -> list[str]:
    command = (sys.executable, "-m", "vgpu", "--gpus", str(gpus), "--force", *command)
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600, cwd=POSTS)
    return done.stdout.splitlines()


def test_the_readme_has_every_program():
    assert sorted(name for name, _, _ in ROWS) == sorted(path.name for path in POSTS.glob("*.py"))


@pytest.mark.parametrize(("name", "used_by"), [row[:2] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_program_is_used_where_the_readme_says(name, used_by):
    post, _, short = name.removesuffix(".py").partition("_")
    links = re.findall(r"\]\((.+?)\)", used_by)
    assert links
    for link in links:
        text = (POSTS / link).read_text(encoding="utf-8")
        assert name in text or (f"{post}_{{name}}.py" in text and f'"{short}"' in text), link


@pytest.mark.parametrize(("name", "prints"), [(name, prints) for name, _, prints in ROWS], ids=[row[0] for row in ROWS])
def test_a_program_prints_what_the_readme_says(name, prints, capsys):
    command, line = re.fullmatch(r"(?:with `python -m vgpu --gpus (.+?)`: )?(nothing|`.+`).*", prints).groups()
    line = line.strip("`")
    if name == "001_completed.py" and without_gpu.compiler() is None:
        pytest.skip("no C++ compiler to run the CUDA source with")
    if command:
        assert line in run(*command.split())
    elif line == "nothing":
        runpy.run_path(str(POSTS / name), run_name="__main__")
        assert capsys.readouterr() == ("", "")
    else:
        error, _, words = line.partition(": ")
        with pytest.raises(Exception, match=re.escape(words)) as caught:
            runpy.run_path(str(POSTS / name), run_name="__main__")
        assert type(caught.value).__name__ == error


def test_on_one_gpu_nothing_is_lost():
    assert "y1: torch.Size([10, 3, 128, 128])" in run(2, "003_program_1.py")[1]
