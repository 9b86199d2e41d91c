"""Which entries a question in somebody's own words asks for: by their symptoms, and by the words they share with it."""

import difflib
import math
import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from math import fsum  # in the order of a set, which differs from run to run, a plain sum rounds differently
from pathlib import Path

from multigpu.failures import Failure, catalogue

# The share of the words of a question that an entry must hold to answer it; rare words count more.
ENOUGH = 0.6
FEW = 4  # a question of so few words need not say that it is about several GPUs
VOCABULARY = tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))
EMPTY = frozenset(VOCABULARY["empty"].split())
DOMAIN = frozenset(VOCABULARY["domain"].split())
ONE_WORD = {word: meaning for meaning, words in VOCABULARY["same"].items() for word in words.split()}
PHRASES = [(re.compile(pattern), f" {meaning} ") for pattern, meaning in VOCABULARY["phrases"]]
COMPLAINTS = frozenset(VOCABULARY["complaints"].split())
IMPLIED = {word: frozenset(others.split()) for word, others in VOCABULARY["implied"].items()}
# The words that a question about a subject must hold ("a|b" for either), and the entries to begin with.
SUBJECTS = [
    (tuple(frozenset(words.split("|")) for words in subject["words"].split()), subject["entries"])
    for subject in VOCABULARY["subjects"]
]
OTHER_COMPLAINT = 0.4  # the worth of a symptom that shares words with a question, but not its complaint
MISSPELT, ALIKE = 5, 0.8  # how many letters a misspelt word must have, and how similar it must be to the right one
MANY = 200  # a text of more words is not a question: its spelling is not corrected, which would take seconds


@dataclass(frozen=True)
class Demand:
    """How well a symptom must fit a question to answer it; words count by their rarity."""

    named: float  # the share of the symptom's words that the question must hold
    explained: float  # the share of the question that these words must be: the rest may name a model or a version
    telling: int = 0  # how many of these words must be outside DOMAIN, whose words many questions have


OF_ANY = Demand(named=0.75, explained=0.3)
OF_OURS = Demand(named=0.75, explained=0.12)  # a question about several GPUs
LOOSE = Demand(named=0.6, explained=0.0, telling=2)  # such a question, if little else answers it


def nearest(text: str, count: int = 3) -> list[Failure]:
    """The entries that share most words with the text, however few."""
    return [entry for entry, share in _likeness(text)[:count] if share]


def topic(text: str) -> list[Failure]:
    """The entries of a topic if the text is only its name, such as "FSDP"; else none."""
    chapters = VOCABULARY["topics"].get(text.strip().lower(), [])
    return [entry for chapter in chapters for entry in catalogue() if entry.chapter == chapter]


def alike(plain: str) -> list[Failure]:
    """The entries that hold enough of the words of a text to be an answer."""
    return [entry for entry, share in _likeness(plain) if share > ENOUGH]


def by_subject(plain: str) -> list[str]:
    """The names of entries to begin with, for a question about several GPUs that no symptom resembles.

    They are those of the first subject that the question names.
    """
    asked = _asked(plain)
    asked |= _implied(asked)
    if not asked & DOMAIN:
        return []
    return next((names for needed, names in SUBJECTS if all(words & asked for words in needed)), [])


def _implied(asked: set[str]) -> set[str]:
    """The words that others imply: a question about DDP is about several GPUs."""
    return set().union(*(IMPLIED.get(word, frozenset()) for word in asked))


def _meanings(text: str) -> set[str]:
    """The meanings of the words of a question, without words that mean nothing here."""
    plain = re.sub(r"(?<=[a-z0-9])-(?=[a-z])", " ", re.sub(r"[`*\"]", "", text.lower()))
    for pattern, meaning in PHRASES:
        plain = pattern.sub(meaning, plain)
    words = re.findall(r"[a-z_][a-z_0-9']{1,}|-\d+|\b13[79]\b", plain)
    return {ONE_WORD.get(word, word) for word in words if word not in EMPTY} - EMPTY


def _asked(plain: str) -> set[str]:
    """The meanings of the words of a question; wrong spellings are corrected."""
    words = _meanings(plain)
    return words if len(words) > MANY else {_spelt(word) for word in words}


def by_symptom(plain: str, demand: Demand | None = None) -> list[Failure]:
    """The entries with a symptom that a question names; the first is the one that explains most of the question.

    Args:
        plain: the question.
        demand: how well a symptom must fit; by default it depends on whether the question is about several GPUs.
    """
    asked = _asked(plain) - EMPTY
    said = set(re.findall(r"[a-z]+|[a-z_]+", plain.lower()))
    ours = bool(({ONE_WORD.get(word, word) for word in said} | asked) & DOMAIN)
    if not asked or (not ours and (demand or len(asked) > FEW)):
        return []
    demand = demand or (OF_OURS if ours else OF_ANY)
    rarity = _rarity()
    weight = {word: rarity.get(word, rarity[""]) for word in asked}
    implied = _implied(asked)
    complaint = asked & COMPLAINTS
    scores: dict[Failure, float] = {}
    for entry, symptoms in _symptoms():
        for words in symptoms:
            shared = fsum(weight[word] for word in words & asked)
            unsaid = (words & implied) - asked if len(words & asked) > 1 else frozenset()
            meant = shared + fsum(rarity[word] for word in unsaid)
            named = meant / fsum(rarity.get(word, rarity[""]) for word in words)
            same = words & COMPLAINTS <= complaint and (not complaint or bool(words & complaint))
            enough = named > demand.named and len((words & asked) - DOMAIN) >= demand.telling
            explained = demand.explained * (OTHER_COMPLAINT if words & complaint else 1.0) * fsum(weight.values())
            if (enough if len(words) > 2 else words <= asked) and shared > explained:
                score = shared * named**2 * (1.0 if same else OTHER_COMPLAINT)
                scores[entry] = max(scores.get(entry, 0.0), score)
    return sorted(scores, key=lambda entry: -scores[entry])


@cache
def _spelt(word: str) -> str:
    """A word as it was meant: "eposh", which no symptom has, is "epoch", which some symptom has."""
    known = _rarity().keys() | EMPTY | DOMAIN
    if word in known or len(word) < MISSPELT:
        return word
    first = [other for other in sorted(known | ONE_WORD.keys()) if other[:1] == word[0]]
    meant = next(iter(difflib.get_close_matches(word, first, n=1, cutoff=ALIKE)), word)
    return ONE_WORD.get(meant, meant)


@cache
def _symptoms() -> tuple[tuple[Failure, tuple[frozenset[str], ...]], ...]:
    return tuple((entry, tuple(frozenset(_meanings(symptom)) for symptom in entry.symptoms)) for entry in catalogue())


@cache
def _rarity() -> dict[str, float]:
    """The weight of a word in a question. It is the higher, the fewer symptoms have it; "" is a word that none has."""
    frequency = Counter(word for _, symptoms in _symptoms() for word in frozenset().union(*symptoms))
    total = 1 + sum(1 for _, symptoms in _symptoms() if symptoms)
    rarity = {word: math.log(total / count) for word, count in frequency.items()}
    return rarity | {"": math.log(total) / 2}


def _likeness(text: str) -> list[tuple[Failure, float]]:
    """Every entry with the share of the text's words, weighed by rarity, that it holds; best first."""
    held, frequency = _words_of_entries()
    # A word that no entry has weighs most: a question about something else must not get an answer.
    weights = {word: math.log((1 + len(held)) / (1 + frequency[word])) for word in _words(text)}
    total = fsum(weights.values()) or 1.0
    shares = [(entry, fsum(weights[word] for word in weights.keys() & words) / total) for entry, words in held.items()]
    return sorted(shares, key=lambda pair: -pair[1])


@cache
def _words_of_entries() -> tuple[dict[Failure, frozenset[str]], Counter[str]]:
    # Without the cause: of so long a text one word would be enough to find a message that has nothing else in common.
    texts = {entry: " ".join((entry.id, entry.title, entry.message, *entry.symptoms)) for entry in catalogue()}
    held = {entry: frozenset(_words(text)) for entry, text in texts.items()}
    return held, Counter(word for words in held.values() for word in words)


def _words(text: str) -> set[str]:
    """The words of a text, without the kind of its error, which many entries share that have nothing else in common."""
    return {word for word in re.findall(r"[a-z_]{3,}", text.lower()) if not word.endswith(("error", "exception"))}
