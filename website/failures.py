"""The catalogue as pages: one a failure, and an index by chapter and by what one sees."""

import re
from dataclasses import replace
from itertools import groupby

from multigpu.failures import CHAPTERS, Failure, catalogue
from multigpu.failures.page import symptoms, text

INDEX = """\
# What fails on several GPUs

{count} failures: what one sees, why, and what mends it. Paste an error text into the search, or ask in a terminal,
which takes a whole traceback, too:

```sh
python -m multigpu explain "found at least two devices"
python train.py 2>&1 | python -m multigpu explain
```

What the marks *today*, *until torch X*, *simulated only*, *hardware*, *other library* and *some runs* mean stands
[below](#the-marks).
"""
MARKS = """\
## The marks

- *today*: a test runs the program on virtual GPUs, sees it fail with this message, and runs the repaired program.
- *until torch X*: it is told as history. A test sees the program run through on newer versions.
- *simulated only*: the program acts out what a GPU or its compiled kernel does, and a test runs it and its repair.
- *hardware*, *other library*: it takes a GPU, a network, a system or a library that the tests do not have.
- *some runs*: it is a race, which some machines show in most runs and others never do.
- *silent*: nothing is raised. The program ends in an assertion of what one would expect.

Every program begins with `import torch` and `from torch import nn`.
"""


def index() -> str:
    """The index: every failure by chapter, then by what one sees."""
    parts = [INDEX.format(count=len(catalogue()))]
    for chapter, entries in groupby(catalogue(), key=lambda entry: entry.chapter):
        lines = [f"- [{entry.title}]({entry.id}.md) ({marks(entry)})" for entry in entries]
        parts.append("\n".join([f"## {CHAPTERS[chapter]}\n", *lines, ""]))
    return "\n".join([*parts, symptoms("{}.md"), MARKS])


def pages() -> dict[str, str]:
    """The markdown of each failure's page by its id; its links count from the place of `layout.CATALOGUE`."""
    return {entry.id: page(entry) for entry in catalogue()}


def page(entry: Failure) -> str:
    """One failure: its title, its message, its cause and its repair."""
    told = replace(entry, cause=linked(entry.cause), check=linked(entry.check), fix=linked(entry.fix))
    return f"---\norphan: true\n---\n\n# {capital(entry.title)}\n\n**{marks(entry)}** · `{entry.id}`\n\n{text(told)}"


def linked(prose: str) -> str:
    """Prose that names other entries, with links to their pages."""
    names = sorted((entry.id for entry in catalogue() if "-" in entry.id), key=len, reverse=True)
    return re.sub(rf"(?<![\w`-])({'|'.join(names)})(?![\w`-])", r"[\1](failures.md#\1)", prose)


def marks(entry: Failure) -> str:
    """`today, silent`."""
    return f"{entry.mark}, silent" if entry.silent else entry.mark


def capital(title: str) -> str:
    """A title as it begins a page."""
    return title if title.startswith("`") else title[:1].upper() + title[1:]
