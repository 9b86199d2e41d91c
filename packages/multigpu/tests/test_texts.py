"""The search answers texts that this project wrote: situations, tracebacks and logs, each with its stored answer.

`python tests/test_texts.py` stores today's answers anew and prints how many are right; `git diff` then shows each one
that has changed.
"""

import difflib
import tomllib
from dataclasses import dataclass
from pathlib import Path

from multigpu.failures import CHAPTERS, catalogue
from multigpu.failures.match import answer

TEXTS = Path(__file__).parent / "texts"
ANSWERS = TEXTS / "answers.txt"
SILENCES = 10  # texts of each chapter that the catalogue has nothing to say to


@dataclass(frozen=True)
class Asked:
    """A text, the entry that answers it ("" where silence is right), and the name of its answer in answers.txt."""

    name: str
    entry: str
    kind: str
    text: str


def read(chapter: str) -> list[Asked]:
    entries = tomllib.loads((TEXTS / f"{chapter}.toml").read_text(encoding="utf-8"))
    silences = entries.pop("silence")["texts"]
    asked = [
        Asked(f"{entry} {kind}", entry, kind, text) for entry, texts in entries.items() for kind, text in texts.items()
    ]
    return asked + [Asked(f"{chapter} silence {k}", "", "silence", text) for k, text in enumerate(silences, start=1)]


ASKED = [asked for chapter in CHAPTERS for asked in read(chapter)]


def answered(asked: Asked) -> tuple[str, bool]:
    """The entry that a text is answered with first, "" for none, and whether the search is sure."""
    said = answer(asked.text)
    return (said.entries[0].id if said.entries else ""), said.sure


def line(asked: Asked) -> str:
    entry, sure = answered(asked)
    return f"{asked.name}: {entry or 'silence'}{'' if sure or not entry else ', a guess'}"


def test_every_entry_has_a_situation_and_every_chapter_its_silences() -> None:
    told = {asked.entry for asked in ASKED if asked.kind == "situation"}
    assert told == {entry.id for entry in catalogue()}
    assert [sum(asked.kind == "silence" for asked in read(chapter)) for chapter in CHAPTERS] == [
        SILENCES for _ in CHAPTERS
    ]


def test_every_text_is_answered_as_it_was() -> None:
    stored = ANSWERS.read_text(encoding="utf-8").splitlines()
    changed = [*difflib.unified_diff(stored, [line(asked) for asked in ASKED], "stored", "today", n=0, lineterm="")]
    assert changed == [], "run python tests/test_texts.py, and look at each answer that has changed"


if __name__ == "__main__":
    ANSWERS.write_text("".join(f"{line(asked)}\n" for asked in ASKED), encoding="utf-8")
    for kind in dict.fromkeys(asked.kind for asked in ASKED):
        given = [(asked, *answered(asked)) for asked in ASKED if asked.kind == kind]
        right = sum(entry == asked.entry for asked, entry, _ in given)
        wrong = sum(sure and entry != asked.entry for asked, entry, sure in given)
        print(f"{kind}: {right} of {len(given)} answered with the right entry first, {wrong} wrong and sure")
