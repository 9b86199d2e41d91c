"""A stored notebook as a page: drawings in the page itself, outcomes folded, questions and solutions as stored."""

import html
import re
from typing import Any

import nbformat
from nbformat import NotebookNode

from course.kit.learn.predict import OUTCOME_TEXT
from course.tools.links import is_bootstrap

FOLDED = "hide-output"  # tags of MyST-NB
NO_SOURCE = "remove-input"
SENTENCES = "sentences"  # of a cell that prints no columns, so its lines may be broken; site.css knows it
SVG = "image/svg+xml"
SLIDERS = '<script src="../_static/frames/{name}.js"></script><div class="sliders" data-frames="{name}">{svg}</div>'


def as_page(nb: NotebookNode) -> NotebookNode:
    """The notebook as MyST-NB takes it; changes `nb`."""
    nb.cells = [cell for cell in nb.cells if not is_bootstrap(cell)]
    for cell in nb.cells:
        if cell.cell_type != "code":
            continue
        tags = set(cell.metadata.get("tags", []))
        if cell.metadata.get("jupyter", {}).get("source_hidden"):
            tags.add(NO_SOURCE)
        if any(is_outcome(output) for output in cell.outputs):
            tags.add(FOLDED)
        if cell.outputs and not any(has_columns(output) for output in cell.outputs):
            tags.add(SENTENCES)
        cell.metadata["tags"] = sorted(tags)
        cell.outputs = [in_page(output) for output in cell.outputs]
    return nb


def with_sliders(cell: NotebookNode, name: str, frames: dict[str, Any]) -> None:
    """Let a cell show sliders that need no kernel; their figures are in the script `name`.js."""
    starts = [slider["values"].index(slider["start"]) for slider in frames["sliders"]]
    first = 0
    for slider, k in zip(frames["sliders"], starts, strict=True):
        first = first * len(slider["values"]) + k
    markup = "\n".join(frames["lines"][k] for k in frames["frames"][first])
    cell.outputs = [
        nbformat.v4.new_output("display_data", data={"text/html": SLIDERS.format(name=name, svg=drawing(markup))})
    ]


def drawing(markup: str) -> str:
    """A drawing in the page, in a box that scrolls where the page is too narrow."""
    return f'<div class="drawing">{markup[markup.index("<svg") :]}</div>'


def is_outcome(output: NotebookNode) -> bool:
    """Whether an output answers a question that the reader was asked before."""
    return output.get("data", {}).get("text/plain", "").startswith(OUTCOME_TEXT)


def has_columns(output: NotebookNode) -> bool:
    """Whether the text of an output is set out with blanks, as a table or a traceback is; its lines must stay whole."""
    text = output.get("text") or output.get("data", {}).get("text/plain", "")
    return "  " in text or output.output_type == "error"


def in_page(output: NotebookNode) -> NotebookNode:
    """An output as the page has it. A drawing stands in the page itself: its words can be searched and read aloud."""
    data = output.get("data", {})
    if is_outcome(output):
        answer = data["text/plain"].partition(": ")[2]
        data["text/html"] = f'<p class="outcome"><b>Outcome:</b> {escaped(answer)}</p>'
    elif SVG in data:
        data["text/html"] = drawing(data.pop(SVG))
    elif "text/html" in data:
        data["text/html"] = with_pages(data["text/html"])
    return output


def with_pages(markup: str, folder: str = "") -> str:
    """HTML whose links to notebooks lead to their pages, which are in `folder`."""
    return re.sub(r'href="(\w+)\.ipynb"', rf'href="{folder}\1.html"', markup)


def escaped(text: str) -> str:
    """Text as HTML; what stands between grave accents is code."""
    parts = html.escape(text).split("`")
    return "".join(f"<code>{part}</code>" if k % 2 else part for k, part in enumerate(parts))
