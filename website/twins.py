"""A Markdown twin beside each page, for programs that read the site: `failures/two-devices.md` beside the `.html`.

`llms.txt` lists them, in the form that https://llmstxt.org describes.
"""

import re
import shutil
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course.kit.learn.predict import OUTCOME_TEXT
from multigpu.failures import CHAPTERS, Failure, catalogue
from website import layout
from website.entry import capital, sources_of

INTRODUCTION = """\
# Multi-GPU PyTorch, on a laptop

> A course in notebooks, a catalogue of failures with their fixes, and virtual GPUs to test multi-GPU code without any.

`python -m multigpu explain --json` answers an error text from the catalogue, and `python -m multigpu serve` does so as
a server of the Model Context Protocol.
"""


def write(source: Path, out: Path) -> None:
    """Write the twins and their list into the folder `out` of the finished site.

    Args:
        source: the folder of the sources that the pages were made of.
        out: the folder of the pages.
    """
    for entry in catalogue():
        put(out / layout.FAILURES / f"{entry.id}.md", failure(entry))
    for path in sorted(layout.layout().pages):
        if path.endswith(".md"):
            target = out / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / path, target)
        else:
            nb = nbformat.read(layout.ROOT / path, as_version=4)
            put(out / Path(path).with_suffix(".md"), notebook(nb))
    put(out / "llms.txt", listed())


def put(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8", newline="\n")


def failure(entry: Failure) -> str:
    """One failure of the catalogue: the message first, then all that its page has, nothing folded."""
    parts = [f"# {entry.message if not entry.silent else capital(entry.title)}\n"]
    parts.append(f"{capital(entry.title)}. Entry `{entry.id}`, tested: {entry.marks}.\n")
    for head, text in (("Fix", entry.fix), ("Cause", entry.cause), ("How to find out", entry.check)):
        if text:
            parts.append(f"## {head}\n\n{text}\n")
    for head, code in (("A program that fails", entry.program), ("Repaired", entry.repaired)):
        if code:
            parts.append(f"## {head}\n\n```python\n{code.strip()}\n```\n")
    for head, lines in (("Other wordings", entry.older), ("Sources", sources_of(entry))):
        if lines:
            parts.append("\n".join([f"## {head}\n", *(f"- {' '.join(line.split())}" for line in lines), ""]))
    return "\n".join(parts)


def notebook(nb: NotebookNode) -> str:
    """A notebook's text, its programs and what they printed; outcomes of questions stay out, as they are folded."""
    parts = []
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            parts.append(re.sub(r"\.ipynb(?=[)#])", ".md", cell.source) + "\n")
        elif cell.cell_type == "code" and not cell.metadata.get("jupyter", {}).get("source_hidden"):
            parts.append(f"```python\n{cell.source}\n```\n")
            parts += [f"```text\n{text.rstrip()}\n```\n" for text in map(printed, cell.outputs) if text.strip()]
    return "\n".join(parts)


def printed(output: NotebookNode) -> str:
    """What an output says in letters; a figure says its description."""
    text = output.get("text") or output.get("data", {}).get("text/plain", "")
    if output.output_type == "error":
        text = f"{output.ename}: {output.evalue}"
    return "" if text.startswith(OUTCOME_TEXT) else text


def listed() -> str:
    """The list of all twins: lessons, guides, failures by chapter."""
    parts = [INTRODUCTION]
    lessons = [(title(path), path.replace(".ipynb", ".md")) for path in layout.notebooks()]
    parts.append(section("The course", lessons))
    for name, pages in layout.GUIDES.items():
        parts.append(section(name, [(title(path), path) for path in pages]))
    for key, name in CHAPTERS.items():
        entries = [entry for entry in catalogue() if entry.chapter == key]
        parts.append(section(name, [(capital(entry.title), f"{layout.FAILURES}/{entry.id}.md") for entry in entries]))
    return "\n".join(parts)


def section(head: str, pages: list[tuple[str, str]]) -> str:
    return "\n".join(
        [f"## {head}\n", *(f"- [{name.replace('[', '(').replace(']', ')')}]({page})" for name, page in pages), ""]
    )


def title(path: str) -> str:
    """The title of a page of the repository."""
    file = layout.ROOT / path
    if path.endswith(".md"):
        text = file.read_text(encoding="utf-8")
    else:
        cells = nbformat.read(file, as_version=4).cells
        text = next(cell.source for cell in cells if cell.cell_type == "markdown" and cell.source.startswith("# "))
    return next(line.removeprefix("# ") for line in text.splitlines() if line.startswith("# "))
