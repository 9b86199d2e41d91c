"""The catalogue as a page among the notebooks: a live search field, and below it the chapters, which need no kernel.

`python -m course failures_page` writes it.
"""

import re
from collections import Counter
from collections.abc import Sequence

from course.kit.files import NOTEBOOKS
from course.tools.generated import write_or_check
from multigpu.failures import CHAPTERS, catalogue

NOTEBOOK_PAGE = NOTEBOOKS / "failures.ipynb"
INDEX = "../packages/multigpu/docs/failures.md"
HEADER = """\
# The failures, searchable

What goes wrong on several GPUs: {count} failures, each with the message one sees, a small program that shows it, the
cause, the fix, and where people met it. *today*: a test sees the program fail and its repaired form run. *until torch
X*: it runs through on today's. *simulated only*: the program acts out what a GPU does. *hardware*, *other library*,
*some runs*: there is no program, and the entry rests on its sources.

Run the cell below (shift and enter) and type: a few words, an error message, a whole traceback. Without a kernel, as on
GitHub, choose a chapter in the table: it leads to a list with one line a failure.
From a terminal, `python -m multigpu explain "found at least two devices"` does the same as the field.
"""
FIELD = "from course.tools.failures_search import search\n\nsearch()"


def notebook_page() -> str:
    """The whole of notebooks/failures.ipynb, as the notebook tool would store it."""
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

    from course.tools.failures_search import search
    from course.tools.store import as_text, normal_form

    words = {"text/plain": search()._repr_mimebundle_()["text/plain"]}
    field = new_code_cell(FIELD, execution_count=1)
    field.outputs = [new_output("execute_result", words, execution_count=1)]
    header = new_markdown_cell(HEADER.format(count=len(catalogue())).strip())
    cells = [header, field, new_markdown_cell(_chapters())]
    return as_text(normal_form(new_notebook(cells=cells)))


def _chapters() -> str:
    """A table of the chapters, each with the number of its failures and a link to their list."""
    counts = Counter(entry.chapter for entry in catalogue())
    rows = [f"| [{title}]({INDEX}#{_anchor(title)}) | {counts[key]} |" for key, title in CHAPTERS.items()]
    return "\n".join(["## The chapters", "", "| chapter | failures |", "|---|---|", *rows])


def _anchor(title: str) -> str:
    """The anchor of a heading as GitHub names it."""
    return re.sub(r"[^\w-]", "", title.lower().replace(" ", "-"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or say under --check which are out of date."""
    return write_or_check("failures_page", __doc__, lambda: {NOTEBOOK_PAGE: notebook_page()}, arguments)
