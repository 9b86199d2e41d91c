"""Rank the entries for a text that no pattern knows by the words they share with it: BM25.

S. Robertson and H. Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009: a word counts more the fewer
entries have it, and the more often this entry has it for its length. An entry is read as a whole, and once more by the
one of its symptoms that fits best, because a symptom is a question as people ask it.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

from multigpu.failures import Failure, catalogue

SATURATION, LENGTH = 1.2, 0.75  # k1 and b of BM25, at their usual values
WORD = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*")
NUMBERED = re.compile(r"([a-z]+)(\d+)")
PLURAL = 3  # a longer word that ends in "s" is read without it


@dataclass(frozen=True)
class Index:
    """Documents as BM25 reads them, each with the entry it belongs to.

    Attributes:
        documents: for each document the name of its entry, and how often it has each word.
        weights: of each word that occurs: the higher, the fewer documents have it.
        unknown: the weight of a word that no document has.
        length: the mean number of words of a document.
    """

    documents: tuple[tuple[str, Counter[str]], ...]
    weights: dict[str, float]
    unknown: float
    length: float

    def scores(self, words: list[str]) -> dict[str, float]:
        """The score of each entry that shares a word; of several documents of an entry the best one counts."""
        scores: dict[str, float] = {}
        known = [(word, self.weights[word]) for word in words if word in self.weights]
        for name, counts in self.documents:
            long = SATURATION * (1 - LENGTH + LENGTH * counts.total() / self.length)
            held = [(weight, counts[word]) for word, weight in known if word in counts]
            score = sum(weight * count * (SATURATION + 1) / (count + long) for weight, count in held)
            if score > scores.get(name, 0.0):
                scores[name] = score
        return scores


def ranked(text: str) -> list[Failure]:
    """The entries that share a word with a text, the likeliest first; before them those with just this symptom."""
    words = list(dict.fromkeys(words_of(text)))
    whole, by_symptom = _whole().scores(words), _symptoms().scores(words)
    asked = set(words)
    exact = {name for name, counts in _symptoms().documents if counts.keys() == asked}

    def order(entry: Failure) -> tuple[bool, float]:
        return entry.id not in exact, -whole[entry.id] - by_symptom.get(entry.id, 0.0)

    return sorted((entry for entry in catalogue() if entry.id in whole), key=order)


def share(entry: Failure, text: str) -> float:
    """How much of the words of a text an entry has, by their weights: from 0 to 1."""
    index = _whole()
    weights = {word: index.weights.get(word, index.unknown) for word in words_of(text)}
    counts = dict(index.documents)[entry.id]
    return sum(weight for word, weight in weights.items() if word in counts) / (sum(weights.values()) or 1.0)


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, without the "s" of a plural; `all_reduce` and "gpu0" also by their parts."""
    words = []
    for word in WORD.findall(text.lower()):
        parts = word.split("_") if "_" in word else []
        numbered = [NUMBERED.fullmatch(part) for part in parts or [word]]
        words += [word, *parts, *(part for found in numbered if found for part in found.groups())]
    return [word[:-1] if len(word) > PLURAL and word.endswith("s") else word for word in words]


def text_of(entry: Failure) -> str:
    """All that an entry says, but its programs."""
    named = entry.id.replace("-", " ")
    return " ".join(
        (named, entry.title, entry.message, *entry.older, *entry.symptoms, entry.cause, entry.check, entry.fix)
    )


@cache
def _whole() -> Index:
    return _index(lambda entry: [text_of(entry)])


@cache
def _symptoms() -> Index:
    return _index(lambda entry: entry.symptoms)


def _index(texts: Callable[[Failure], Iterable[str]]) -> Index:
    documents = tuple((entry.id, Counter(words_of(text))) for entry in catalogue() for text in texts(entry))
    frequency = Counter(word for _, counts in documents for word in counts)
    weights = {word: math.log(1 + (len(documents) - count + 0.5) / (count + 0.5)) for word, count in frequency.items()}
    mean = sum(counts.total() for _, counts in documents) / len(documents)
    return Index(documents, weights, unknown=math.log(1 + (len(documents) + 0.5) / 0.5), length=mean)
