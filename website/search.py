"""The catalogue's search for the page of Sphinx's search: `match`, `reading` and `ranking` again.

Sphinx finds the pages that hold every word of a query, which a pasted traceback has on no page. So static/explain.js
answers like `python -m multigpu explain`: it is those three modules in JavaScript, with the data from here.
"""

import json
import re
from typing import Any

from multigpu.failures import CHAPTERS, catalogue, match, ranking, reading
from multigpu.failures.marking import marked
from multigpu.failures.sentences import cases, sentences
from multigpu.failures.topics import TOPICS
from website import topics
from website.entry import capital
from website.failures import chapter_page
from website.layout import FAILURES
from website.prose import first_sentence

LINES = (
    "COLOURS",
    "ENDLESS",
    "REPETITIONS",
    "PIECE",
    "TELLING",
    "NOT_LETTERS",
    "FRAME",
    "CARETS",
    "RAISED",
    "USAGE",
    "BARE",
    "ASSERTED",
    "WARNED",
    "NOT_WARNED",
)
PROGRAMS = ("REPORT", "PYTORCH", "KINDRED", "SEVERAL", "OTHERS", "TORCH", "FOREIGN")
CONSTANTS = {
    reading: ("TRACEBACK", "TYPESET", "LONG", "REPEATED", "AROUND", "AT_MOST", "NEAR", "FEW_WORDS"),
    match: ("CANDIDATES", "REPORTED", "ENOUGH", "NEARLY_ALL"),
    ranking: ("SATURATION", "LENGTH", "PLURAL"),
}
EXPRESSIONS = ("patterns", "generic", "unless")
FLAGS = {re.IGNORECASE: "i", re.MULTILINE: "m"}
IGNORING = re.compile(r"\(\?i:((?:[^()]|\((?:[^()])*\))*)\)")
# What an expression of Python means and one of JavaScript does not, outside of an escaped letter.
ONLY_PYTHON = re.compile(r"\\[^AZ]|(?P<form>\\[AZ]|\(\?(?:P|>|\(|#|[aiLmsux]+[):-])|[*+?}]\+|\{,\d|\[\^?\])", re.DOTALL)


def script() -> str:
    """A script that assigns the constant which explain.js reads; a page opened as a file may not fetch data."""
    return f"window.catalogueOfFailures = {json.dumps(data(), separators=(',', ':'))}\n"


def data() -> dict[str, Any]:
    """The entries, and what the search of Python compares them with."""
    entries = [
        {
            "id": entry.id,
            "title": capital(entry.title),
            "message": entry.message,
            "cause": marked(first_sentence(entry.cause)),
            "cases": [(marked(sentence), quotes) for sentence, quotes in cases(entry.cause)],
            "fix": list(map(marked, sentences(entry.fix))),
            "after": entry.after,
            **{name: list(map(in_javascript, getattr(entry, name))) for name in EXPRESSIONS},
            "symptoms": entry.symptoms,
            "text": ranking.text_of(entry),
        }
        for entry in catalogue()
    ]
    return {
        "entries": entries,
        "expressions": {name: expression(getattr(reading, name)) for name in LINES + PROGRAMS},
        **{name: getattr(module, name) for module, names in CONSTANTS.items() for name in names},
        "TOPICS": chapters_of_topics(),
        "LESSONS": topics.words(),
    }


def chapters_of_topics() -> dict[str, list[tuple[str, str]]]:
    """The chapters that a topic's name stands for, each with its title and its page: "fsdp" is that of shards."""
    return {
        name: [(CHAPTERS[key], f"{FAILURES}/{chapter_page(key)}.html") for key in keys] for name, keys in TOPICS.items()
    }


def expression(compiled: re.Pattern[str]) -> tuple[str, str]:
    """A compiled expression as the two arguments of JavaScript's `RegExp`, whose letters are those of ASCII alone."""
    if not compiled.flags & re.ASCII:
        raise ValueError(
            f"compile {compiled.pattern!r} by reading.expression: here its \\w would be any alphabet's letter"
        )
    return in_javascript(compiled.pattern), "".join(name for flag, name in FLAGS.items() if compiled.flags & flag)


def in_javascript(pattern: str) -> str:
    """An expression of Python as JavaScript reads it. Raises ValueError for a form that is not translated."""
    plain = IGNORING.sub(lambda part: both_cases(part[1]), pattern)
    for found in ONLY_PYTHON.finditer(plain):
        if found["form"]:
            raise ValueError(f"{found['form']!r} in the expression {pattern!r} means something else in JavaScript")
    return plain


def both_cases(pattern: str) -> str:
    """`warn` as `[wW][aA][rR][nN]`: not every browser knows `(?i:warn)`."""
    letters = re.sub(r"\\.|[a-z]", lambda m: m[0] if m[0].startswith("\\") else f"[{m[0]}{m[0].upper()}]", pattern)
    return f"(?:{letters})"
