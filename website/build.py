"""Build the site: `python -m website.build [--out DIR] [--repo owner/name]`, which is what `make site` calls.

It asks nothing of the network. `--repo` names the project at GitHub: with it pages link to their files there and
notebooks to Colab; without it no page promises an address that does not exist.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import nbformat

from course.tools.links import repository
from course.tools.reading_order import PARTS, part_of
from multigpu.failures import CHAPTERS
from website import api, failures, frames, home, layout, lighter, links, notebook, search, twins

CONFIGURATION = Path(__file__).parent
IMAGES = {".svg", ".png", ".jpg"}
FRAMES = "frames"  # folder of the figures of sliders


def main(argv: list[str] | None = None) -> int:
    """Gather the sources into a folder of their own, and have Sphinx make pages of them."""
    parser = argparse.ArgumentParser(prog="python -m website.build", description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=layout.ROOT / "build" / "site", help="where the pages go")
    parser.add_argument("--repo", type=repository, help="owner/name at GitHub, for links to files and Colab")
    parser.add_argument("--still", action="store_true", help="no sliders: their figures take minutes at the first time")
    parser.add_argument(
        "--frames", type=Path, default=layout.ROOT / "build" / "frames", help="where their figures are kept"
    )
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        gather(Path(folder) / "source", options.repo or "", None if options.still else options.frames)
        code = sphinx(Path(folder), options.out, options.repo or "")
        finish(Path(folder) / "source", options.out)
    if code == 0:
        visit = lighter.first_visit(options.out)
        megabytes = sum(path.stat().st_size for path in options.out.rglob("*") if path.is_file()) / 1e6
        pages = len(list(options.out.rglob("*.html")))
        print(
            f"{pages} pages, {megabytes:.1f} MB, a first visit {visit / 1e3:.0f} KB, in {options.out}: open index.html"
        )
    return code


def gather(source: Path, repo: str = "", cache: Path | None = None) -> None:
    """Write the sources of all pages into the new folder `source`, in the form that Sphinx takes.

    `cache` is a folder for the figures of sliders; without one the sliders stand still.
    """
    shown = layout.layout()
    put(source / "index.md", home.page() + contents(), layout.HOME, "index.md", shown, repo)
    for path in sorted(shown.pages):
        if path.endswith(".md"):
            put(source / path, (layout.ROOT / path).read_text(encoding="utf-8"), path, path, shown, repo)
        else:
            put_notebook(source, path, shown, repo, cache)
    put_failures(source)
    modules = api.pages()
    write(source / "api" / "index.md", api.index() + toctree("", list(modules)))
    for name, text in modules.items():
        write(source / "api" / f"{name}.rst", text)
    for image in sorted((layout.ROOT / "docs").rglob("*")):
        if image.suffix in IMAGES:
            target = source / image.relative_to(layout.ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(image, target)


def put_notebook(source: Path, path: str, shown: layout.Layout, repo: str, cache: Path | None) -> None:
    """Write a notebook as a page, and the figures of its sliders as scripts."""
    nb = nbformat.read(layout.ROOT / path, as_version=4)
    for position, drawn in (frames.of_notebook(nb, cache) if cache else {}).items():
        name = f"{Path(path).name[:2]}-{position}"
        write(source / FRAMES / f"{name}.js", frames.script(name, drawn))
        notebook.with_sliders(nb.cells[position], name, drawn)
    nb = notebook.as_page(nb)
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            cell.source = links.on_site(cell.source, path, path, shown, repo)
    (source / path).parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nb, source / path)


def put_failures(source: Path) -> None:
    """Write the catalogue: its index, below it the chapters, and below each of those its failures."""
    folder = source / layout.FAILURES
    write(folder / "index.md", failures.index() + toctree("", [failures.chapter_page(key) for key in CHAPTERS]))
    for key in CHAPTERS:
        members = [entry.id for entry in failures.of_chapter(key)]
        write(folder / f"{failures.chapter_page(key)}.md", failures.chapter(key) + toctree("", members))
    for name, text in failures.pages().items():
        write(folder / f"{name}.md", text)


def put(target: Path, text: str, path: str, place: str, shown: layout.Layout, repo: str) -> None:
    """Write a page of markdown whose text stands in the file `path` of the repository."""
    write(target, links.on_site(text, path, place, shown, repo))


def write(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8", newline="\n")


def contents() -> str:
    """The menu: the notebooks part by part, the failures, the guides, the API."""
    parts = []
    for start, name in PARTS.items():
        members = [path for path in layout.notebooks() if part_of(Path(path).name[:2]) == start]
        parts.append(toctree(name, members))
    parts.append(toctree("What fails on several GPUs", ["failures/index.md"]))
    parts += [toctree(caption, pages) for caption, pages in layout.GUIDES.items()]
    return "\n".join([*parts, toctree("The API", ["api/index.md"])])


def toctree(caption: str, pages: list[str]) -> str:
    """A part of the menu."""
    names = [re.sub(r"\.(md|ipynb)$", "", page) for page in pages]
    head = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["", "```{toctree}", *head, "", *names, "```", ""])


def sphinx(folder: Path, out: Path, repo: str) -> int:
    """Sphinx's exit code; a warning, such as a link that leads nowhere, is an error."""
    from sphinx.cmd.build import main as build

    os.environ["FRCNN_LITE_REPO"] = repo
    caches = ["--doctree-dir", str(folder / "doctrees"), "--conf-dir", str(CONFIGURATION)]
    strict = ["--quiet", "--fail-on-warning", "--keep-going"]
    return build([*strict, "-b", "html", *caches, str(folder / "source"), str(out)])


def finish(source: Path, out: Path) -> None:
    """Add the figures of the sliders, the data of the search of the catalogue, and a twin of each page for programs.

    What only those who debug the theme's scripts would read is taken away: it is 3 MB.
    """
    if (source / FRAMES).exists():
        shutil.copytree(source / FRAMES, out / "_static" / FRAMES, dirs_exist_ok=True)
    write(out / "_static" / "catalogue.js", search.script())
    twins.write(source, out)
    lighter.lighten(out)
    for debugging in (out / "_static").rglob("*.map"):
        debugging.unlink()


if __name__ == "__main__":
    sys.exit(main())
