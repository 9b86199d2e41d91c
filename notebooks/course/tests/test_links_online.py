"""The links to where the course runs online, and the cell that brings it along there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml

from course.kit.files import NOTEBOOKS
from course.tools import links
from course.tools.links import BOOTSTRAP, PASTED, bring, cited, is_bootstrap, linked, main, pinned

ROOT = NOTEBOOKS.parent
FIRST = NOTEBOOKS / "00_start_here.ipynb"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    path = tmp_path / FIRST.name
    path.write_bytes(FIRST.read_bytes())
    return path


def test_readme_has_links_only_with_an_address():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    with_links = linked(readme, "me/it")
    assert "https://colab.research.google.com/github/me/it/blob/main/notebooks/00_start_here.ipynb" in with_links
    assert all(place in with_links for place in ("kaggle.com", "mybinder.org/v2/gh/me/it/main", "codespaces.new/me/it"))
    assert linked(with_links, "") == linked(readme, "")
    assert "colab.research" not in linked(readme, "")


def test_readme_clones_the_project_before_it_installs_from_it():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "```sh\ngit clone https://github.com/me/it\ncd it\npip install ./packages/vgpu " in linked(readme, "me/it")
    assert "git clone" not in linked(readme, "")
    address = re.search(r"git clone https://github.com/(\S+)", readme)
    assert readme == linked(readme, address[1] if address else ""), "run `make links`"


def test_the_citation_has_the_address_or_no_word_of_it():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    before, after = yaml.safe_load(cited(citation, "")), yaml.safe_load(cited(cited(citation, "me/it"), "you/fork"))
    assert "repository-code" not in before
    assert after == {**before, "repository-code": "https://github.com/you/fork"}
    assert cited(cited(citation, "me/it"), "") == cited(citation, "")


def test_what_is_pasted_has_an_address_and_a_version():
    workflow, hook = (
        pinned(path.read_text(encoding="utf-8"), before, "me/it", "v1.2") for path, before in PASTED.items()
    )
    assert "git+https://github.com/me/it@v1.2#subdirectory=packages/vgpu" in workflow
    assert "- repo: https://github.com/me/it\n  rev: v1.2\n" in hook
    for page, before in zip((workflow, hook), PASTED.values(), strict=True):
        gone = pinned(page, before, "", "")
        assert "me/it" not in gone and "v1.2" not in gone and gone.count("OWNER/NAME") >= 1
        assert pinned(gone, before, "me/it", "v1.2") == page


def test_the_newest_version_is_a_tag_or_a_commit():
    version = links.newest_version()
    found = subprocess.run(["git", "cat-file", "-t", version], cwd=ROOT, capture_output=True, text=True)
    assert found.stdout.strip() in ("commit", "tag")


def test_the_cell_comes_before_the_first_one_and_goes_without_a_trace(copy):
    before = copy.read_bytes()
    bring(copy, "me/it")
    cells = [cell for cell in nbformat.read(copy, 4).cells if cell.cell_type == "code"]
    assert is_bootstrap(cells[0]) and not any(map(is_bootstrap, cells[1:]))
    assert "https://github.com/me/it" in cells[0].source and cells[0].metadata["jupyter"]["source_hidden"]
    bring(copy, "you/fork")  # a second address replaces the first
    assert sum(map(is_bootstrap, nbformat.read(copy, 4).cells)) == 1
    bring(copy, "")
    assert copy.read_bytes() == before


def test_the_cell_does_nothing_elsewhere(monkeypatch):
    for name in ("COLAB_RELEASE_TAG", "KAGGLE_KERNEL_RUN_TYPE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: pytest.fail(f"it ran {args}"))
    path = list(sys.path)
    exec(BOOTSTRAP.format(repo="me/it"), {})
    assert sys.path == path


def test_the_cell_brings_the_course_along(monkeypatch, tmp_path):
    """As on Colab: a real clone (of this repository, under the address) and every path that pip is given."""
    really_run, installed = subprocess.run, []

    def run(command, **options):
        if "pip" in command:
            installed.extend(command)
            return None
        return really_run(command, **options)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLAB_RELEASE_TAG", "release")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(subprocess, "run", run)
    settings = {f"url.{ROOT.as_uri()}.insteadOf": "https://github.com/me/it", "safe.directory": "*"}
    monkeypatch.setenv("GIT_CONFIG_COUNT", str(len(settings)))
    for k, (key, value) in enumerate(settings.items()):
        monkeypatch.setenv(f"GIT_CONFIG_KEY_{k}", key)
        monkeypatch.setenv(f"GIT_CONFIG_VALUE_{k}", value)
    exec(BOOTSTRAP.format(repo="me/it"), {})
    projects = [Path(part) for part in installed if os.path.isabs(part) and part != sys.executable]
    assert [(project / "pyproject.toml").exists() for project in projects] == [True, True, True]
    assert (Path(sys.path[0]) / "course" / "kit" / "setup.py").exists()


def test_an_address_that_is_not_one_is_refused(capsys, monkeypatch):
    monkeypatch.setattr(links, "bring", lambda *args: pytest.fail("written"))
    with pytest.raises(SystemExit):
        main(["--repo", "https://github.com/me/it"])
    assert "must be owner/name" in capsys.readouterr().err
