"""Write the index of the catalogue, docs/failures.md: `python -m multigpu.failures.page`, in a checkout."""

import argparse
import sys
from itertools import groupby
from pathlib import Path

from multigpu.failures import CHAPTERS, Failure, catalogue
from multigpu.failures.marking import marked

PAGE = Path(__file__).resolve().parents[3] / "docs" / "failures.md"
ENTRIES = "../src/multigpu/failures"  # the catalogue itself, one file a chapter, as the page links to it
HEADER = """\
# The catalogue of failures

{count} failures, one a line: its name, what happens, and how it is tested. A terminal shows the whole entry with its
cause and its fix, by an error text, by a whole traceback, or by the name in the list:

```sh
python -m multigpu explain "found at least two devices"
python train.py 2>&1 | python -m multigpu explain
python -m multigpu explain two-devices
```

To search as you type, open [notebooks/failures.ipynb](../../../notebooks/failures.ipynb) in JupyterLab. The site, which
`make site` builds, has a page for every failure.

- *today*: a test runs the program on virtual GPUs, sees it fail with this message, and runs the repaired program.
- *until torch X*: it is history, in the words that people saw then. A test sees the program run through on newer
  versions.
- *simulated only*: the program acts out what a GPU or its compiled kernel does, and a test runs it and its repair.
- *hardware*, *other library*: it takes a GPU, a network, a system or a library that the tests do not have. So there is
  no program, and the entry rests on its sources.
- *some runs*: it is a race, which some machines show in most runs and others never do, so no test can wait for it.
- *silent*: nothing is raised. The program ends in an assertion of what one would expect.

Every program begins with `import torch` and `from torch import nn`. This page is written by
`python -m multigpu.failures.page` from the `.toml` files that it links to; a test fails when they disagree.
"""


def page() -> str:
    """The whole of docs/failures.md."""
    sections = [HEADER.format(count=len(catalogue()))]
    for chapter, entries in groupby(catalogue(), key=lambda entry: entry.chapter):
        whole = f"[{chapter}.toml]({ENTRIES}/{chapter}.toml) has their messages, causes and fixes."
        sections.append("\n".join([f"## {CHAPTERS[chapter]}\n", f"{whole}\n", *map(_line, entries), ""]))
    return "\n".join(sections)


def _line(entry: Failure) -> str:
    return f"- `{entry.id}`: {marked(entry.title)} (*{entry.marks}*)"


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
