"""Find the entries of the catalogue that answer a text: an error message, a whole traceback, or a question.

A message, a log or a traceback is matched by patterns. A text that none of them fits is taken for a question, and its
answer is a guess: by the words and symptoms of the entries, then by the words that a question shares with them.
"""

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cache

from multigpu.failures import Failure, catalogue, reading
from multigpu.failures.question import LOOSE, VOCABULARY, alike, by_subject, by_symptom
from multigpu.failures.reading import Line, bounded, joined, lines_of, plain_text, unrepeated

CANDIDATES = 3  # how many entries a question gets to choose from, if so many fit it
REPORTED = 3  # the rank of a report, which comes after the error itself
LAST = 8  # how many frames, and lines beside them, show where it happened
# An expression that recognises the line of a place, and the names of the entries that mostly fail there.
PLACES = [(re.compile(bounded(place["pattern"]), re.IGNORECASE), place["entries"]) for place in VOCABULARY["places"]]


@dataclass(frozen=True)
class Answer:
    """Entries, the likeliest first, and how they were found.

    Attributes:
        entries: the entries.
        sure: whether the text holds a message of the first entry, and ends in no unknown error.
        lines: for each entry the lines of the text that its message is in; none for a guess by words.
    """

    entries: tuple[Failure, ...]
    sure: bool
    lines: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class _Fit:
    """A pattern of an entry that fits a text: how much it demands, and in what kind of line it ends."""

    entry: Failure
    lines: tuple[str, ...]
    letters: int
    told: bool
    last: bool
    warned: bool
    doubtful: bool  # other programs print it, too, and nothing shows that it is ours; or the text contradicts it


def answer(text: str) -> Answer:
    """The entries that answer a text; none if the catalogue does not know it."""
    text = unrepeated(plain_text(text))
    if reading.FOREIGN.search(text) and not reading.PYTORCH.search(text):
        return Answer((), sure=False)
    lines = lines_of(text)
    others = bool(reading.OTHERS.search(text) and not reading.TORCH.search(text))
    fits = _fits(lines, several=bool(reading.SEVERAL.search(text)), others=others)
    raised = any(line.raised and not line.warned for line in lines) or reading.TRACEBACK in text
    sure = [fit for fit in fits if fit.told and not fit.doubtful and not (fit.warned and raised)]
    if sure and not _last_is_unknown(lines, sure):
        return _answered(sure, sure=True)
    if fits:
        return _answered(fits, sure=False)
    guesses = tuple(_guesses(text, lines)) if _ours(text) else ()
    return Answer(guesses, sure=False, lines=((),) * len(guesses))


def _answered(fits: list[_Fit], sure: bool) -> Answer:
    """The answer by these fits, in their order."""
    ordered = sorted(fits, key=_precedence)
    return Answer(tuple(fit.entry for fit in ordered), sure, tuple(fit.lines for fit in ordered))


def matching(text: str) -> list[Failure]:
    """The entries that answer a text, the likeliest first."""
    return list(answer(text).entries)


def _precedence(fit: _Fit) -> tuple[bool, int, bool, bool, int]:
    """The order of fits: causes before consequences, errors before warnings, the last error first, long patterns."""
    return (fit.doubtful, fit.entry.after, fit.warned, not fit.last, -fit.letters)


def _fits(lines: list[Line], several: bool, others: bool) -> list[_Fit]:
    """The best fit of each entry whose patterns fit the text.

    Args:
        lines: the lines of the text.
        several: whether the text shows a sign of several processes.
        others: whether the text is of a program that does not use PyTorch.
    """
    plain, ends = joined(lines)
    last = max((number for number, line in enumerate(lines) if line.raised), default=-1)
    told = " ".join(line.text for line in lines if line.told)

    def fit(entry: Failure, pattern: str, doubtful: bool) -> _Fit | None:
        found = _compiled(pattern).search(plain)
        if not found:
            return None
        number = bisect_left(ends, found.end())
        line = lines[number]
        first = bisect_left(ends, found.start() + 1)
        decided = tuple(read.text for read in lines[first : number + 1] if read.text)
        said = line.told or bool(_compiled(pattern).search(told))
        letters = len(re.sub(r"\\.|\W", "", pattern))
        return _Fit(entry, decided, letters, said, number >= last >= 0, line.warned, doubtful)

    best = []
    for entry in catalogue():
        against = others or any(_compiled(pattern).search(plain) for pattern in entry.unless)
        tried = [fit(entry, pattern, doubtful=against) for pattern in entry.patterns]
        tried += [fit(entry, pattern, doubtful=against or not several) for pattern in entry.generic]
        fits = [found for found in tried if found is not None]
        if fits:
            best.append(min(fits, key=_precedence))
    return best


def _last_is_unknown(lines: list[Line], fits: list[_Fit]) -> bool:
    """Whether no entry knows the last error of a text, apart from reports of other errors.

    Then a message further up mostly happened on the way, or belongs to other ranks.
    """
    raised = [number for number, line in enumerate(lines) if line.raised and not reading.REPORT.search(line.text)]
    if not raised or any(fit.last and fit.entry.after < REPORTED for fit in fits):
        return False
    end = " ".join(line.text for line in lines[raised[-1] :])
    entries = [fit.entry for fit in fits if fit.entry.after < REPORTED]
    patterns = (pattern for entry in entries for pattern in entry.patterns + entry.generic)
    return not any(_compiled(pattern).search(end) for pattern in patterns)


def _ours(text: str) -> bool:
    """Whether a text shows a sign of PyTorch, a GPU or several processes, or is too short to need one."""
    few = len(text.split()) <= reading.FEW_WORDS
    return few or bool(reading.PYTORCH.search(text) or reading.KINDRED.search(text))


def _guesses(text: str, lines: list[Line]) -> list[Failure]:
    """Entries for a question, by its words; for a traceback that no pattern knows, by its last message and place."""
    raised = [line.text for line in lines if line.raised]
    plain = raised[-1] if raised else " ".join(text.split())
    symptoms = [] if raised else by_symptom(plain)
    asked = [entry for entry in catalogue() if any(_compiled(words).search(plain) for words in entry.words)]
    there = _at_place(lines, bool(raised))
    if raised:
        return _once([entry for entry in asked if entry in there] + there + asked) or alike(plain)
    found = _once(symptoms + asked)
    if len(found) < CANDIDATES:
        found = _once(found + by_symptom(plain, LOOSE))[: max(len(found), CANDIDATES)]
    in_words = all(line.told for line in lines)  # a question, and not a piece of a traceback
    about = _named(by_subject(plain)) if in_words and not found else []
    return _once(found + about + there)[: max(len(found), CANDIDATES)] or alike(plain)


def _at_place(lines: list[Line], raised: bool) -> list[Failure]:
    """The entries that mostly fail in the place that a text names, in its last messages or the last frames of an error.

    Frames without the error that ends them are not an answer: they show where it happened, but not what.
    """
    frames = [line.text for line in lines if not line.told][-LAST:] if raised else []
    said = [line.text for line in lines if line.told][-LAST:]
    for pattern, names in PLACES:
        if any(pattern.search(line) for line in frames + said):
            return _named(names)
    return []


def _named(names: list[str]) -> list[Failure]:
    return [entry for name in names for entry in catalogue() if entry.id == name]


def _once(entries: list[Failure]) -> list[Failure]:
    return list(dict.fromkeys(entries))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(bounded(pattern), re.IGNORECASE)
