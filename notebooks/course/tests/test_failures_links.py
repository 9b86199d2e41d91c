"""Every link of the catalogue leads to a section that treats the failure: its text, code or outputs speak of it."""

import re

import pytest
from notebook_sections import sections

from multigpu.failures import Failure, catalogue
from multigpu.failures.page import NOTEBOOKS as FOLDER

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
    patterns = entry.patterns + entry.generic + entry.words
    return any(re.search(pattern, unit, re.IGNORECASE) for pattern in patterns for unit in units)


@pytest.mark.parametrize("name", IDS)
def test_linked_section_treats_the_failure(name: str) -> None:
    entry = IDS[name]
    assert section(entry), f"notebook {entry.notebook} has no section {entry.section!r}"
    assert treats(entry, section(entry)), f"{entry.notebook}, {entry.section!r} does not speak of {name}"


@pytest.mark.parametrize("name", WITH_TERMS)
def test_terms_are_those_of_the_failure_and_of_few_sections(name: str) -> None:
    """Words that stand everywhere, or that the entry does not use, would prove nothing about a section."""
    entry = IDS[name]
    told = " ".join(
        [entry.id, entry.title, entry.message, *entry.patterns, *entry.generic, entry.cause, entry.fix, entry.program]
    )
    for term in entry.terms:
        words = re.findall(r"\w{3,}", term.lower())
        assert any(word.rstrip("s") in told.lower() for word in words), f"{name} does not use a word of {term!r}"
    places = [(path.name[:2], title) for path in NOTEBOOKS.values() for title in sections(path) if title != MAP]
    meeting = [(number, title) for number, title in places if holds(sections(NOTEBOOKS[number])[title], entry.terms)]
    assert len(meeting) <= FEW, meeting


@pytest.mark.parametrize("name", [name for name, entry in IDS.items() if entry.mark != "today"])
def test_mark_stands_in_the_section(name: str) -> None:
    """A reader who sees a failure acted out, or told as history, reads so where it happens and not in the list only."""
    entry = IDS[name]
    assert holds(section(entry), (entry.mark,)), f"{entry.notebook}, {entry.section!r} does not say {entry.mark!r}"


def test_a_section_that_only_names_a_neighbour_does_not_pass() -> None:
    lost = IDS["optimizer-left-behind"]
    assert not treats(lost, ("## The loader that hides what is missing", "the last layer stays untrained"))
    assert not treats(lost, ("optimizer.step()", "its state", "on a GPU"))
    assert treats(lost, ("The optimizer's state stays on the device where it was made.",))
