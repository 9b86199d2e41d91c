"""An answer of the catalogue as plain data, for programs and agents: `explain --json` prints it, `serve` sends it."""

from typing import Any

from multigpu.failures import Failure
from multigpu.failures.lookup import Found
from multigpu.failures.sentences import quoting

# How the entries were found, in the words of those who read an answer without this file beside them.
MEANING = {
    "named": "The text is the name of this entry.",
    "sure": "The text holds a message of the first entry.",
    "guess": "No sure sign of an entry is in the text; the first entry is likely by its words. Call it a guess.",
    "topic": "The text only names a topic. These are its entries; ask for the message, or for a name of these.",
    "near": "No entry answers this text. These share words with it, and are not an answer.",
    "unknown": "The catalogue knows nothing about this text. Do not invent an entry.",
}


def record(found: Found) -> dict[str, Any]:
    """An answer as a dictionary that JSON can hold.

    Returns:
        "found", one of the keys of MEANING, "meaning", its sentence, and "entries", the likeliest first. An answer's
        entries have their cause, check, fix and sources; the entries of "topic" and "near" only "entry" and "title".
    """
    entries = zip(found.entries, found.lines, strict=True)
    tell = whole if found.answered else titled
    return {"found": found.how, "meaning": MEANING[found.how], "entries": [tell(*entry) for entry in entries]}


def titled(entry: Failure, lines: tuple[str, ...]) -> dict[str, Any]:
    """The name and the title of an entry; `lines` are for the whole one."""
    return {"entry": entry.id, "title": entry.title}


def whole(entry: Failure, lines: tuple[str, ...]) -> dict[str, Any]:
    """An entry with all that a repair needs; a key whose value would be empty is left out.

    Args:
        entry: the entry.
        lines: the lines of the text that decided.
    """
    told = {
        **titled(entry, lines),
        "tested": entry.marks,
        "decided_by": list(lines),
        "message": entry.message,
        "cause_of_these_lines": quoting(entry.cause, lines),
        "cause": entry.cause,
        "check": entry.check,
        "fix": entry.fix,
        "failing_program": entry.program.strip(),
        "repaired_program": entry.repaired.strip(),
        "copy": entry.helper and f"python -m frcnn_lite copy {entry.helper}",
        "read": entry.notebook and f"notebook {entry.notebook}, section {entry.section!r}",
        "sources": [{"title": thread.cited, "url": thread.url} for thread in entry.threads],
    }
    return {name: value for name, value in told.items() if value}
