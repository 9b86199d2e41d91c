"""Links to where the course runs in a browser and to the project itself, made by one setting: its address at GitHub.

    python -m course links --repo owner/name     # what `make links REPO=owner/name` calls
    python -m course links                       # takes them away again

README gets the links and the `git clone` before its first command, CITATION.cff the address, and every notebook a cell
before its first one, which brings the course along on Colab and Kaggle, where a notebook arrives alone. Without an
address there are no links, because they would lead nowhere. What other projects paste, a workflow of GitHub's and
a hook of pre-commit, gets the address and a version, or placeholders for both.
"""

import argparse
import re
import subprocess
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course.kit.files import NOTEBOOKS
from course.tools.store import normal_form, write

README = NOTEBOOKS.parent / "README.md"
CITATION = NOTEBOOKS.parent / "CITATION.cff"
# What other projects paste, and the words before address and version there.
PASTED = {
    NOTEBOOKS.parent / "packages" / "vgpu" / "docs" / "pytest.md": (r"git\+https://github\.com/", "@"),
    NOTEBOOKS.parent / "packages" / "multigpu" / "docs" / "linter.md": (r"- repo: https://github\.com/", r"\n  rev: "),
}
NOWHERE, NO_VERSION = "OWNER/NAME", "COMMIT"
TAG = "bootstrap"  # of the cell, which the rules do not count
SKIPPED = ["nbval-skip", "skip-execution"]  # tags for nbval, and for what stores the notebooks: numbers of cells stay
PLACE = r"(?<=<!-- {name}: written by notebooks/course/tools/links.py -->\n).*?(?=<!-- end of {name} -->)"
FIRST = "notebooks/00_start_here.ipynb"
LINKS = """\
Notebook 00 opens, with nothing installed, in
[Colab](https://colab.research.google.com/github/{repo}/blob/main/{first}), in
[Kaggle](https://kaggle.com/kernels/welcome?src=https://github.com/{repo}/blob/main/{first}),
which lends two real GPUs, in
[Binder](https://mybinder.org/v2/gh/{repo}/main?urlpath=lab/tree/{first}) and in [Codespaces](https://codespaces.new/{repo}).

"""
INSTALL = """\
```sh
{clone}pip install ./packages/vgpu     # virtual GPUs, and PyTorch where it is missing (on Linux 3 GB)
```
"""
BOOTSTRAP = """\
# On Colab and Kaggle this brings the course along. Anywhere else it does nothing.
import os
import subprocess
import sys

if {{"COLAB_RELEASE_TAG", "KAGGLE_KERNEL_RUN_TYPE"}} & set(os.environ):
    if not os.path.exists("frcnn_lite_course"):
        subprocess.run(["git", "clone", "--depth=1", "https://github.com/{repo}", "frcnn_lite_course"], check=True)
        parts = ["frcnn_lite_course/packages/vgpu", "frcnn_lite_course/packages/multigpu", "frcnn_lite_course"]
        install = [sys.executable, "-m", "pip", "install", "--quiet", "cloudpickle"]
        subprocess.run([*install, *(os.path.abspath(part) for part in parts)], check=True)
    sys.path.insert(0, os.path.abspath("frcnn_lite_course/notebooks"))"""


def main(argv: list[str] | None = None) -> None:
    """Write the links and the cells, or take them away."""
    parser = argparse.ArgumentParser(prog="python -m course links", description=__doc__.partition("\n")[0])
    parser.add_argument("--repo", type=repository, help="owner/name at GitHub; without it the links go")
    parser.add_argument(
        "--rev", help="the tag or commit that other projects paste (default: the newest tag, else the commit of now)"
    )
    options = parser.parse_args(argv)
    repo = options.repo or ""
    for path, renewed in ((README, linked), (CITATION, cited)):
        path.write_text(renewed(path.read_text(encoding="utf-8"), repo), encoding="utf-8", newline="\n")
    version = (options.rev or newest_version()) if repo else ""
    for path, before in PASTED.items():
        path.write_text(pinned(path.read_text(encoding="utf-8"), before, repo, version), encoding="utf-8", newline="\n")
    paths = [*sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb")), *NOTEBOOKS.glob("puzzles.ipynb")]
    for path in paths:
        bring(path, repo)
    told = f"README.md, CITATION.cff, {len(PASTED)} pages at {version} and {len(paths)} notebooks: links to {repo}"
    print(told if repo else "the links are gone")


def repository(name: str) -> str:
    """The argument of --repo; raises argparse's error for what is not an address at GitHub."""
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        raise argparse.ArgumentTypeError(f"must be owner/name, as in pytorch/vision; got {name!r}")
    return name


def linked(readme: str, repo: str) -> str:
    """README with the links of a project and the line that clones it, or with neither."""
    clone = f"git clone https://github.com/{repo}\ncd {repo.partition('/')[2]}\n" if repo else ""
    readme = put("install", INSTALL.format(clone=clone), readme)
    return put("links", LINKS.format(repo=repo, first=FIRST) if repo else "", readme)


def put(name: str, text: str, readme: str) -> str:
    """README with a text in the place that a pair of comments marks by its name."""
    return re.sub(PLACE.format(name=name), lambda _: text, readme, flags=re.DOTALL)


def cited(citation: str, repo: str) -> str:
    """CITATION.cff with the address of a project, before its licence, or with none."""
    without = re.sub(r"^repository-code: .*\n", "", citation, flags=re.MULTILINE)
    line = f'repository-code: "https://github.com/{repo}"\n' if repo else ""
    return without.replace("\nlicense: ", f"\n{line}license: ", 1)


def newest_version() -> str:
    """The newest tag of this clone, or its commit where it has none."""
    tag = subprocess.run(["git", "describe", "--tags", "--abbrev=0"], cwd=NOTEBOOKS, capture_output=True, text=True)
    if tag.returncode == 0:
        return tag.stdout.strip()
    commit = ["git", "rev-parse", "HEAD"]
    return subprocess.run(commit, cwd=NOTEBOOKS, capture_output=True, text=True, check=True).stdout.strip()


def pinned(page: str, before: tuple[str, str], repo: str, version: str) -> str:
    """A page with an address and a version in what other projects paste, or with placeholders.

    Args:
        page: its text.
        before: expressions for what is before the address, and between it and the version.
        repo: owner/name, or an empty text.
        version: a tag or a commit.
    """
    place = rf"({before[0]})[\w.-]+/[\w.-]+({before[1]})[\w./-]+"
    given = repo or NOWHERE, version or NO_VERSION
    return re.sub(place, lambda found: f"{found[1]}{given[0]}{found[2]}{given[1]}", page)


def bring(path: Path, repo: str) -> None:
    """Give a notebook the cell that brings the course along, or take it away."""
    nb = nbformat.read(path, as_version=4)
    nb.cells = [cell for cell in nb.cells if not is_bootstrap(cell)]
    if repo:
        first = next(k for k, cell in enumerate(nb.cells) if cell.cell_type == "code")
        cell = nbformat.v4.new_code_cell(BOOTSTRAP.format(repo=repo))
        cell.metadata["tags"] = [TAG, *SKIPPED]
        nb.cells.insert(first, cell)
    write(normal_form(nb), path)


def is_bootstrap(cell: NotebookNode) -> bool:
    """Whether a cell is the one that this file writes."""
    return TAG in cell.metadata.get("tags", [])
