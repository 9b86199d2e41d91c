"""Look a text up in the catalogue, whatever it is: the name of an entry, a topic, an error text, or a question."""

import difflib
from dataclasses import dataclass

from multigpu.failures import Failure, catalogue
from multigpu.failures.match import answer
from multigpu.failures.ranking import ranked
from multigpu.failures.topics import topic

SHOWN = 3  # one traceback seldom has more than one cause: the first is explained, two more are named by their titles


@dataclass(frozen=True)
class Found:
    """The entries for a text, the likeliest first.

    Attributes:
        how: "named" if the text is the name of an entry, "sure" if it holds a message of the first one, "guess" if
            the first one is likely by its words, "topic" if the text is only the name of a topic, "near" if no entry
            answers it and these share most words with it, "unknown" if there is none at all.
        entries: at most SHOWN, but all of a topic.
        lines: for each entry the lines of the text that decided, as they were read; none if its words decided.
    """

    how: str
    entries: tuple[Failure, ...]
    lines: tuple[tuple[str, ...], ...]

    @property
    def answered(self) -> bool:
        """Whether the first entry is an answer, sure or guessed."""
        return self.how in ("named", "sure", "guess")


def look_up(text: str) -> Found:
    """The entries for a text.

    Args:
        text: the name of an entry, the name of a topic such as "FSDP", an error text, a log, or a question.
    """
    named = tuple(entry for entry in catalogue() if entry.id == text.strip())
    if named:
        return _by_words("named", named)
    if about := topic(text):
        return _by_words("topic", tuple(about))
    said = answer(text)
    if said.sure:
        return Found("sure", said.entries[:SHOWN], said.lines[:SHOWN])
    meant = _misspelt(text.strip())
    if said.entries and not meant:
        return Found("guess", said.entries[:SHOWN], said.lines[:SHOWN])
    near = tuple(entry for entry in catalogue() if entry.id in meant) or tuple(ranked(text)[:SHOWN])
    return _by_words("near" if near else "unknown", near)


def _by_words(how: str, entries: tuple[Failure, ...]) -> Found:
    return Found(how, entries, ((),) * len(entries))


def _misspelt(name: str) -> list[str]:
    """Names of entries that are nearly this one. A long text is not one, and comparing its letters takes seconds."""
    names = [entry.id for entry in catalogue()]
    return difflib.get_close_matches(name, names, n=SHOWN, cutoff=0.8) if len(name) <= 2 * max(map(len, names)) else []
