"""Write the page of the catalogue, docs/failures.md: `python -m multigpu.failures.page`, in a checkout."""

import argparse
import sys
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

from multigpu.failures import CHAPTERS, Failure, catalogue
from multigpu.failures.marking import marked

PAGE = Path(__file__).resolve().parents[3] / "docs" / "failures.md"
NOTEBOOKS = PAGE.parents[3] / "notebooks"
HEADER = """\
# The catalogue of failures

What a user sees, why, and what mends it. With the error text at hand a terminal is quicker, with a whole traceback too:

```sh
python -m multigpu explain "found at least two devices"
python train.py 2>&1 | python -m multigpu explain
```

**today**: a test runs the program on virtual GPUs, sees it fail with this message, and runs the repaired program.
**until torch X**: told as history, in the words people saw then; a test sees the program run through on newer versions.
**simulated only**: the program acts out what a GPU or its compiled kernel does, and a test runs it and its repair.
**hardware** and **other library**: it takes a GPU, a network, a system or a library that the tests do not have. So
there is no program, and the entry is told from its sources. **some runs**: the failure is a race, which some machines
show in most runs and others never do, so no test can wait for it. A *silent* failure raises nothing; its program ends
in an assertion of what one would expect. Every program begins with `import torch` and `from torch import nn`.

To search as you type, open [notebooks/failures.ipynb](../../../notebooks/failures.ipynb) in JupyterLab.

This page is written by `python -m multigpu.failures.page` from the `.toml` files of `multigpu/failures`; a test fails
when they disagree.
"""


def page() -> str:
    """The whole of docs/failures.md."""
    sections = [HEADER, symptoms("#{}"), _contents()]
    for chapter, entries in groupby(catalogue(), key=lambda entry: entry.chapter):
        sections += [f"## {CHAPTERS[chapter]}\n", *map(_section, entries)]
    return "\n".join(sections)


def notebook_file(number: str) -> str:
    """File name of a notebook, empty while it is not written."""
    return next((path.name for path in NOTEBOOKS.glob(f"{number}_*.ipynb")), "")


def place(entry: Failure, folder: str = "../../../notebooks/") -> str:
    """Address of the section of a notebook that tells of a failure, as JupyterLab names it."""
    anchor = quote(entry.section.replace(" ", "-").replace("`", ""))
    return f"{folder}{notebook_file(entry.notebook)}#{anchor}"


def _contents() -> str:
    """A table of all entries."""
    rows = [f"| [{entry.id}](#{entry.id}) | {marked(entry.title)} | {entry.mark} |" for entry in catalogue()]
    return "\n".join(["| entry | what happens | mark |", "|---|---|---|", *rows, ""])


def symptoms(address: str) -> str:
    """A table of what people see; `address` is the link to an entry, with {} for its id."""
    asked = sorted((symptom.lower(), entry.id) for entry in catalogue() for symptom in entry.symptoms)
    rows = [f"| {marked(symptom)} | [{name}]({address.format(name)}) |" for symptom, name in asked]
    return "\n".join(["## What one sees\n", "| symptom | entry |", "|---|---|", *rows, ""])


def _section(entry: Failure) -> str:
    silent = ", silent" if entry.silent else ""
    return f"### {entry.id}\n\n{marked(entry.title)}. **{entry.mark}{silent}**\n\n{text(entry)}"


def text(entry: Failure) -> str:
    """An entry as it is told: message, cause, program, repair, other wordings, and where people met it."""
    parts = [_fenced(entry.message, "text")]
    parts.append(f"*Cause.* {marked(entry.cause)}\n")
    if entry.check:
        parts.append(f"*Find out.* {marked(entry.check)}\n")
    if entry.program:
        parts.append(_fenced(entry.program, "python"))
    parts.append(f"*Fix.* {marked(entry.fix)}\n")
    if entry.repaired:
        parts.append(_fenced(entry.repaired, "python"))
    if entry.older:  # some entries have a dozen, and who reads has found the entry already
        wordings = "; ".join(map(_inline, entry.older))
        parts.append(f"*Other wordings*, most of them of older versions: {wordings}\n")
    parts += [f"- {line}" for line in _further(entry)]
    return "\n".join(parts) + "\n"


def _further(entry: Failure) -> list[str]:
    lines = []
    if entry.helper:
        lines.append(f"helper: `python -m frcnn_lite copy {entry.helper}`")
    if entry.notebook:
        lines.append(f"notebook: [{entry.notebook}, {entry.section}]({place(entry)})")
    return lines + [
        thread.cited.replace(f"*{thread.title}*", f"[{marked(thread.title)}]({thread.url})") for thread in entry.threads
    ]


def _inline(text: str) -> str:
    """A message inside of a line; one that holds backticks stands between two."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _fenced(text: str, language: str) -> str:
    return f"```{language}\n{text.strip()}\n```\n"


def main(arguments: list[str] | None = None) -> int:
    """Write the page, or say whether it is out of date; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m multigpu.failures.page", description=main.__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if the page is out of date")
    check = parser.parse_args(arguments).check
    text = page()
    stale = not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text
    if stale and not check:
        PAGE.write_text(text, encoding="utf-8", newline="\n")
    print(f"docs/{PAGE.name}: {('out of date' if check else 'written') if stale else 'up to date'}")
    return int(stale and check)


if __name__ == "__main__":
    sys.exit(main())
