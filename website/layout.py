"""Which files of the repository become pages of the site, and under which address.

A page keeps its path in the repository, so links between pages hold as they are written. What differs: README.md is
the first page, and each failure of the catalogue has a page of its own.
"""

import posixpath
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from course.tools import reading_order
from multigpu.failures import catalogue

ROOT = Path(__file__).resolve().parents[1]
HOME = "README.md"
CATALOGUE = "packages/multigpu/docs/failures.md"
SEARCH = "notebooks/failures.ipynb"  # the catalogue with a field to search it, which needs a kernel
FAILURES = "failures"  # folder of the site with one page a failure, and their index
API = "api"
ENTRIES = "packages/multigpu/src/multigpu/failures"  # the catalogue itself, one file a chapter
SOURCES = (".", "packages/vgpu/src", "packages/multigpu/src")  # folders of the modules
MADE_OF = {"index": HOME, f"{FAILURES}/index": CATALOGUE, f"{API}/index": "website/api.py"}
# Pages beside the notebooks, in the order of the menu.
GUIDES = {
    "Puzzles": ["notebooks/puzzles.ipynb"],
    "Virtual GPUs": [
        "packages/vgpu/README.md",
        *(f"packages/vgpu/docs/{name}.md" for name in ("pytest", "accelerate", "lightning", "transformers")),
        *(
            f"packages/vgpu/docs/{name}.md"
            for name in ("how-it-works", "results", "green", "races", "third-party", "differential")
        ),
        "packages/vgpu/docs/rivals.md",
    ],
    "Lint, explain, doctor": ["packages/multigpu/README.md", "packages/multigpu/docs/linter.md"],
    "The words of configurations": ["docs/config-words.md"],
    "The project": [
        "docs/architecture.md",
        "docs/detector.md",
        "docs/glossary.md",
        "docs/verdicts.md",
        "data/README.md",
        "docs/adding-a-notebook.md",
        "docs/private-torch.md",
        "docs/CONTRIBUTING.md",
        "CHANGELOG.md",
    ],
}


@dataclass(frozen=True)
class Layout:
    """Which files of the repository are pages."""

    pages: frozenset[str]

    def address(self, path: str) -> str | None:
        """The page that shows a file of the repository, by its name without a suffix, from the root of the site.

        None where the file is not on the site.
        """
        if path == HOME:
            return "index"
        if path in (CATALOGUE, SEARCH):
            return f"{FAILURES}/index"
        return str(PurePosixPath(path).with_suffix("")) if path in self.pages else None


def file_of(page: str) -> str:
    """The file of the repository that a page without a suffix, such as `failures/two-devices`, is made of."""
    folder, _, name = page.rpartition("/")
    if page in MADE_OF:
        return MADE_OF[page]
    if folder == FAILURES:
        chapters = {entry.id: entry.chapter for entry in catalogue()}
        return f"{ENTRIES}/{chapters.get(name, name.removeprefix('chapter-'))}.toml"
    if folder == API:
        modules = [f"{base}/{name.replace('.', '/')}" for base in SOURCES]
        candidates = [f"{module}{end}" for module in modules for end in (".py", "/__init__.py")]
    else:
        candidates = [f"{page}.md", f"{page}.ipynb"]
    files = [posixpath.normpath(path) for path in candidates if (ROOT / path).is_file()]
    if not files:
        raise ValueError(f"the page {page!r} is made of no file of the repository; looked for {', '.join(candidates)}")
    return files[0]


def layout() -> Layout:
    """What the site is made of."""
    return Layout(frozenset([*notebooks(), *(page for pages in GUIDES.values() for page in pages)]))


def notebooks() -> list[str]:
    """The notebooks of the series, in reading order."""
    return [path.relative_to(ROOT).as_posix() for path in reading_order.paths()]
