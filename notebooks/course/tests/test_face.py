"""The README's picture and numbers are those of today, and its program prints what stands below it."""

import re
import subprocess
import sys
import tomllib

import pytest

from course.tools import face

CHARACTERS = 95  # of code: 97 of 8.16 px fit into the 798 px of a column at GitHub, and 95 into one of our own site


def test_the_picture_is_what_the_program_does():
    assert face.PICTURE.read_text(encoding="utf-8") == face.picture().markup, "run `python -m course face`"
    narrow = face.NARROW_PICTURE.read_text(encoding="utf-8")
    assert narrow == face.picture(narrow=True).markup, "run `python -m course face`"


def test_the_numbers_are_those_of_today():
    assert face.README.read_text(encoding="utf-8") == face.readme(), "run `python -m course face`"


def test_the_program_prints_what_the_readme_says(tmp_path):
    text = face.README.read_text(encoding="utf-8")
    program, printed = re.search(r"```python\n(.*?)```.*?```text\n(.*?)```", text, re.S).groups()
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    ran = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, printed), ran.stderr


def test_what_the_program_needs_is_installed_right_above_it():
    text = re.sub(r"<!--.*?-->\n", "", face.README.read_text(encoding="utf-8"))
    installs, program = re.search(r"```sh\n([^`]*)```\n\n```python\n(.*?)```", text, re.DOTALL).groups()
    project = face.ROOT / re.search(r"^pip install (\S+)", installs, re.MULTILINE)[1] / "pyproject.toml"
    described = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    brought = {described["name"], *(re.match(r"\w+", line)[0] for line in described["dependencies"])}
    assert set(re.findall(r"^import (\w+)", program, re.MULTILINE)) == brought


def test_each_number_is_linked_to_its_test():
    for line in face.numbers().splitlines():
        tests = [target for target in re.findall(r"\]\((\S+?)\)", line) if re.search("/(tests|tools)/", target)]
        assert tests and all((face.ROOT / target).is_file() for target in tests), line


def test_the_first_screen_is_short_enough_to_read():
    first = face.README.read_text(encoding="utf-8").partition("## ")[0]
    no_prose = r"```.*?```|<!--.*?-->|<picture>.*?</picture>|^[#|][^\n]*$"
    prose = re.sub(r"!?\[(.*?)\]\(.*?\)", r"\1", re.sub(no_prose, "", first, flags=re.S | re.M))
    sentences = re.split(r"(?<=[.:])\s", prose)
    assert max(map(len, sentences)) <= 240, "a sentence is longer than two lines"


def test_no_line_of_code_is_wider_than_its_column_at_github():
    blocks = re.findall(r"```\w+\n(.*?)```", face.README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) > 5
    wide = [line for block in blocks for line in block.splitlines() if len(line) > CHARACTERS]
    assert wide == [], "a part of it can be read only after scrolling"


@pytest.mark.parametrize("subject", ["scatter", "pinning", "roi_pooling", "grouped_convolution", "einsum"])
def test_the_first_page_leads_from_a_subject_to_its_notebook_and_its_helper(subject):
    lines = face.README.read_text(encoding="utf-8").lower().splitlines()
    named = [line for line in lines if f"*{subject}*".replace("_", " ") in line or f"*device {subject}*" in line]
    assert any(re.search(rf"notebooks/\d\d_\w*{subject}\w*\.ipynb", line) and " copy " in line for line in named)
