"""Which entries of the catalogue speak of a text: an error message, a whole traceback, or words of one's own."""

import math
import re
from collections import Counter
from functools import cache

from multigpu.failures import Failure, catalogue

# Share of what a query asks for, rare words counting more, that an entry must hold to be an answer and not a neighbour.
ENOUGH = 0.6


def matching(text: str) -> list[Failure]:
    """Entries whose patterns fit the text, the most specific first; without any, those that share most of its words."""
    plain = " ".join(text.split())
    fits = {entry: specificity(entry, plain) for entry in catalogue()}
    found = [entry for entry, score in fits.items() if score]
    return sorted(found, key=lambda entry: -fits[entry]) or [
        entry for entry, share in _likeness(plain) if share > ENOUGH
    ]


def nearest(text: str, count: int = 3) -> list[Failure]:
    """The entries that share most words with the text, however few."""
    return [entry for entry, share in _likeness(text)[:count] if share]


def specificity(entry: Failure, plain: str) -> int:
    """How many letters the longest fitting pattern demands; 0 if none fits.

    Counted in the pattern, not in what it matched: one that reaches over a whole traceback is no better for it.
    """
    fitting = (pattern for pattern in entry.patterns if re.search(pattern, plain, re.IGNORECASE))
    return max((len(re.sub(r"\\.|\W", "", pattern)) for pattern in fitting), default=0)


def _likeness(text: str) -> list[tuple[Failure, float]]:
    """Every entry with the share of the text's words, weighed by rarity, that it holds; best first."""
    held, frequency = _words_of_entries()
    # A word that no entry knows weighs most: a question about something else must not pass for one of ours.
    weights = {word: math.log((1 + len(held)) / (1 + frequency[word])) for word in _words(text)}
    total = sum(weights.values()) or 1.0
    shares = [(entry, sum(weights[word] for word in weights.keys() & words) / total) for entry, words in held.items()]
    return sorted(shares, key=lambda pair: -pair[1])


@cache
def _words_of_entries() -> tuple[dict[Failure, frozenset[str]], Counter[str]]:
    held = {
        entry: frozenset(_words(f"{entry.id} {entry.title} {entry.message} {entry.cause}")) for entry in catalogue()
    }
    return held, Counter(word for words in held.values() for word in words)


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z_]{3,}", text.lower()))
