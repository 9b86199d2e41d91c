"""The catalogue as a page among the notebooks: a live search field, and below it a table that needs no kernel.

`python -m course.failures_page` writes it.
"""

import sys
from itertools import groupby
from pathlib import Path

from course.generated import write_or_check
from multigpu.failures import CHAPTERS, Failure, catalogue
from multigpu.failures.marking import marked
from multigpu.failures.page import place

NOTEBOOK_PAGE = Path(__file__).resolve().parents[1] / "failures.ipynb"
TEXTS = "../packages/multigpu/docs/failures.md"
HEADER = """\
# The failures, searchable

What goes wrong on several GPUs: {count} failures, each with the message one sees, a small program that shows it, the
cause, the fix, and where people met it. *today*: a test sees the program fail and its repaired form run. *until torch
X*: it runs through on today's. *simulated only*: the program acts out what a GPU does. *hardware*, *other library*,
*some runs*: no program here, told from its sources.

Run the cell below (shift and enter) and type: a few words, an error message, a whole traceback. On GitHub, or without a
kernel, search this page with your browser; every entry leads to its text in
[failures.md](../packages/multigpu/docs/failures.md).
From a terminal, `python -m multigpu explain "found at least two devices"` does the same.
"""
FIELD = "from course.failures_search import search\n\nsearch()"


def notebook_page() -> str:
    """The whole of notebooks/failures.ipynb, as the notebook tool would store it."""
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

    from course.failures_search import search
    from course.store import as_text, normal_form

    words = {"text/plain": search()._repr_mimebundle_()["text/plain"]}
    field = new_code_cell(FIELD, execution_count=1)
    field.outputs = [new_output("execute_result", words, execution_count=1)]
    cells = [new_markdown_cell(HEADER.format(count=len(catalogue())).strip()), field]
    for chapter, entries in groupby(catalogue(), key=lambda entry: entry.chapter):
        cells.append(new_markdown_cell("\n".join([f"## {CHAPTERS[chapter]}\n", *_table(list(entries))])))
    return as_text(normal_form(new_notebook(cells=cells)))


def _table(entries: list[Failure]) -> list[str]:
    rows = ["| entry | what happens | the message | mark | notebook |", "|---|---|---|---|---|"]
    for entry in entries:
        notebook = f"[{entry.notebook}, {entry.section}]({place(entry, folder='')})" if entry.notebook else ""
        message = " ".join(entry.message.split()).replace("|", "\\|").replace("`", "'")
        link = f"[{entry.id}]({TEXTS}#{entry.id})"
        rows.append(f"| {link} | {marked(entry.title)} | `{message}` | {entry.mark} | {notebook} |")
    return rows


if __name__ == "__main__":
    sys.exit(write_or_check(__doc__, lambda: {NOTEBOOK_PAGE: notebook_page()}))
