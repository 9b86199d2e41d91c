"""The catalogue as pages: one a chapter, and an index by what one sees and by chapter. `entry.py` makes the others."""

from typing import Any

from multigpu.failures import CHAPTERS, Failure, catalogue
from multigpu.failures.marking import marked
from website import home
from website.entry import folded, page, seen
from website.layout import API, FAILURES, GUIDES, notebooks

INDEX = """\
# What fails on several GPUs

{count} failures: what one sees, why, and what mends it.

{field}
In a terminal `python -m multigpu explain` does the same, with the text in quotes, with a file, or with a log through a
pipe.

## By subject

{chapters}
"""
MARKS = """\
## The marks

- *today*: a test runs the program on virtual GPUs, sees it fail with this message, and runs the repaired program.
- *until torch X*: it is history. A test sees the program run through on newer versions.
- *simulated only*: the program acts out what a GPU or its compiled kernel does, and a test runs it and its repair.
- *hardware*, *other library*: it takes a GPU, a network, a system or a library that the tests do not have.
- *some runs*: it is a race, which some machines show in most runs and others never do.
- *silent*: nothing is raised. The program ends in an assertion of what one would expect.

Every program begins with `import torch` and `from torch import nn`.
"""


def index() -> str:
    """The index: a field for an error text, the chapters, and what people see, folded, since it is a long list."""
    chapters = "\n".join(
        f"- [{title}]({chapter_page(key)}.md) ({len(of_chapter(key))})" for key, title in CHAPTERS.items()
    )
    head = INDEX.format(count=len(catalogue()), field=home.field(), chapters=chapters)
    return "\n".join([head, "## By what one sees\n", folded("All of it, by the alphabet", symptoms()), MARKS])


def symptoms() -> str:
    """What people see, each a link to its failure. A list in columns is a third as long as a table."""
    asked = sorted((symptom.lower(), entry.id) for entry in catalogue() for symptom in entry.symptoms)
    links = [f"- [{marked(symptom)}]({name}.md)" for symptom, name in asked]
    return "\n".join(["```{container} symptoms", *links, "```", ""])


def chapter_page(key: str) -> str:
    """The name of the page of a chapter."""
    return f"chapter-{key}"


def chapter(key: str) -> str:
    """The page of a chapter: its failures, each with what people say who meet it."""
    lines = []
    for entry in of_chapter(key):
        lines.append(line(entry) + (f": {seen(entry)}" if entry.symptoms else ""))
    return "\n".join([f"# {CHAPTERS[key]}\n", *lines, ""])


def menu(place: str) -> dict[str, Any]:
    """What the menu beside a page of the catalogue lists, as (page, title), and the chapter that the page is of."""
    chapter_of = {entry.id: entry.chapter for entry in catalogue()}
    name = place.rpartition("/")[2]
    first_pages = {"The course": notebooks()[0], **{part: pages[0] for part, pages in GUIDES.items()}}
    parts = [(file.rpartition(".")[0], title) for title, file in first_pages.items()]
    chapters = [(f"{FAILURES}/{chapter_page(key)}", title) for key, title in CHAPTERS.items()]
    return {
        "site_parts": [("index", "Home"), *parts, (f"{API}/index", "The API")],
        "chapters": [(f"{FAILURES}/index", "All of them, by what one sees"), *chapters],
        "chapter": f"{FAILURES}/{chapter_page(chapter_of[name])}" if name in chapter_of else place,
    }


def of_chapter(key: str) -> list[Failure]:
    """The entries of a chapter."""
    return [entry for entry in catalogue() if entry.chapter == key]


def line(entry: Failure) -> str:
    """A failure in a list."""
    return f"- [{marked(entry.title)}]({entry.id}.md) ({entry.marks})"


def pages() -> dict[str, str]:
    """The markdown of each failure's page by its id."""
    return {entry.id: page(entry) for entry in catalogue()}
