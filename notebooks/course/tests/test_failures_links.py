"""Every link of the catalogue leads to a section that treats the failure: its text, code or outputs speak of it."""

import re

from notebook_sections import sections

from course.kit.files import NOTEBOOKS as FOLDER
from multigpu.failures import Failure, catalogue

IDS = {entry.id: entry for entry in catalogue() if entry.notebook}
NOTEBOOKS = {path.name[:2]: path for path in sorted(FOLDER.glob("[0-9][0-9]_*.ipynb"))}
WITH_TERMS = [name for name, entry in IDS.items() if entry.terms]
MAP = "The map"  # of notebook 00: it holds a sentence of every notebook
FEW = 4  # sections of the series in which the terms of an entry may meet


def section(entry: Failure) -> tuple[str, ...]:
    return sections(NOTEBOOKS[entry.notebook]).get(entry.section, ())


def holds(units: tuple[str, ...], terms: tuple[str, ...]) -> bool:
    text = "\n".join(units).lower()
    return all(term.lower() in text for term in terms)


def treats(entry: Failure, units: tuple[str, ...]) -> bool:
    """A pattern fits a paragraph, a cell or an output; for an entry with terms, all of them stand in the section.

    A pattern is tried unit by unit: its `.*` would find any two words in the length of a section.
    """
    if entry.terms:
        return holds(units, entry.terms)
    patterns = entry.patterns + entry.generic
    return any(re.search(pattern, unit, re.IGNORECASE) for pattern in patterns for unit in units)


def test_linked_sections_treat_their_failures() -> None:
    linked = {name: f"{entry.notebook}, {entry.section!r}" for name, entry in IDS.items()}
    assert len(linked) > 100
    assert [(name, linked[name]) for name, entry in IDS.items() if not section(entry)] == [], "no such sections"
    assert [(name, linked[name]) for name, entry in IDS.items() if not treats(entry, section(entry))] == []


def own_words(entry: Failure) -> str:
    told = [entry.id, entry.title, entry.message, *entry.patterns, *entry.generic, entry.cause, entry.fix]
    return " ".join([*told, entry.program]).lower()


def test_terms_are_words_of_their_failure() -> None:
    """Words that the entry does not use would prove nothing about a section."""
    terms = [(entry, term) for entry in IDS.values() for term in entry.terms]
    foreign = [
        (entry.id, term)
        for entry, term in terms
        if not any(word.rstrip("s") in own_words(entry) for word in re.findall(r"\w{3,}", term.lower()))
    ]
    assert terms and foreign == []


def test_terms_meet_in_few_sections() -> None:
    """Words that are everywhere would prove nothing about a section either."""
    places = [units for path in NOTEBOOKS.values() for title, units in sections(path).items() if title != MAP]
    meeting = {name: sum(holds(units, IDS[name].terms) for units in places) for name in WITH_TERMS}
    assert {name: count for name, count in meeting.items() if count > FEW} == {}


def test_sections_say_that_a_failure_is_acted_out_or_history() -> None:
    """So a reader reads it where it happens, and not in the list alone."""
    marked = [entry for entry in IDS.values() if entry.mark != "today"]
    assert marked and [entry.id for entry in marked if not holds(section(entry), (entry.mark,))] == []


def test_a_section_that_only_names_a_neighbour_does_not_pass() -> None:
    lost = IDS["optimizer-left-behind"]
    assert not treats(lost, ("## The loader that hides what is missing", "the last layer stays untrained"))
    assert not treats(lost, ("optimizer.step()", "its state", "on a GPU"))
    assert treats(lost, ("The optimizer's state stays on the device where it was made.",))
