"""Which files of the repository become pages of the site, and under which address.

A page keeps its path in the repository, so links between pages hold as they are written. What differs: README.md is
the first page, and each failure of the catalogue has a page of its own.
"""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
HOME = "README.md"
CATALOGUE = "packages/multigpu/docs/failures.md"
SEARCH = "notebooks/failures.ipynb"  # the catalogue with a field to search it, which needs a kernel
FAILURES = "failures"  # folder of the site with one page a failure, and their index
API = "api"
# Pages beside the notebooks, in the order of the menu.
GUIDES = {
    "Virtual GPUs": [
        "packages/vgpu/README.md",
        *(f"packages/vgpu/docs/{name}.md" for name in ("pytest", "accelerate", "lightning", "transformers")),
        *(f"packages/vgpu/docs/{name}.md" for name in ("how-it-works", "green", "third-party", "differential")),
        "packages/vgpu/docs/rivals.md",
    ],
    "Lint, explain, doctor": ["packages/multigpu/README.md", "packages/multigpu/docs/linter.md"],
    "The project": [
        "docs/architecture.md",
        "docs/detector.md",
        "docs/glossary.md",
        "docs/verdicts.md",
        "data/README.md",
        "docs/adding-a-notebook.md",
        "docs/private-torch.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    ],
}


@dataclass(frozen=True)
class Layout:
    """Which files of the repository are pages."""

    pages: frozenset[str]

    def address(self, path: str, anchor: str = "") -> str | None:
        """The page that shows a file of the repository, by its name without a suffix, from the root of the site.

        None where the file is not on the site.
        """
        if path == HOME:
            return "index"
        if path == CATALOGUE and anchor:
            return f"{FAILURES}/{anchor}"
        if path in (CATALOGUE, SEARCH):
            return f"{FAILURES}/index"
        return str(PurePosixPath(path).with_suffix("")) if path in self.pages else None


def layout() -> Layout:
    """What the site is made of."""
    return Layout(frozenset([*notebooks(), *(page for pages in GUIDES.values() for page in pages)]))


def notebooks() -> list[str]:
    """The notebooks of the series, in reading order."""
    return [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))]
