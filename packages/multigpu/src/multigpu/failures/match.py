"""Find the entries of the catalogue that answer a text: an error message, a whole traceback, or a question.

A message, a log or a traceback is matched by patterns. A text that none of them fits is taken for a question, and its
answer is a guess: the entries that share most words with it.
"""

import math
import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cache

from multigpu.failures import Failure, catalogue, reading
from multigpu.failures.ranking import ranked, share
from multigpu.failures.reading import Line, bounded, joined, lines_of, plain_text, unrepeated

# A guess must have this share of the words of a text; of one that shows no sign of PyTorch nearly all of them.
ENOUGH, NEARLY_ALL = 0.25, 0.9
CANDIDATES = 3  # how many entries a question gets to choose from, if so many fit it
REPORTED = 3  # the rank of a report, which comes after the error itself


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
    guesses = tuple(_guesses(lines, _enough(text, raised)))
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
        letters = len(re.sub(r"\\.|\W", "", pattern, flags=re.ASCII))
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


def _enough(text: str, raised: bool) -> float:
    """The share of the words of a text that a guess must have; a short question need not say what it is about."""
    few = len(text.split()) <= reading.FEW_WORDS
    if reading.PYTORCH.search(text) or reading.KINDRED.search(text) or (few and not raised):
        return ENOUGH
    return NEARLY_ALL if few else math.inf


def _guesses(lines: list[Line], enough: float) -> list[Failure]:
    """Entries for a text that no pattern knows, by the words of its messages: a frame says little of a failure."""
    said = " ".join(line.text for line in lines if line.told)
    likely = ranked(said)[:CANDIDATES]
    return likely if likely and share(likely[0], said) > enough else []


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return reading.expression(bounded(pattern), re.IGNORECASE)
