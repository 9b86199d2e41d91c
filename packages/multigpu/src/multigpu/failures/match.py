"""Which entries of the catalogue speak of a text: an error message, a whole traceback, or words of one's own.

A message, a log or a traceback is matched by patterns. What holds none of them is taken for a question, and answered by
a guess: by the words and symptoms of the entries, then by the words that a question shares with them.
"""

import difflib
import math
import re
import tomllib
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from multigpu.failures import Failure, catalogue

# Share of what a query asks for, rare words counting more, that an entry must hold to be an answer and not a neighbour.
ENOUGH = 0.6
CANDIDATES = 3  # entries that a question is given to choose from, where so many fit it
LAST = 8  # frames, and lines beside them, that tell where it happened
FEW = 4  # words of a question so short that it need not say what it is about

# What colours a terminal's text, also as it is pasted from a page that left out the sign of escape.
COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|(?:\^\[)?\[\d+(?:;\d+)*m")
# Quotation marks and dashes as a web page or a word processor sets them, and what the program has printed.
TYPESET = {
    "\u2018": "'",
    "\u2019": "'",
    "\u02bc": "'",
    "\u201c": '"',
    "\u201d": '"',
    "\u2010": "-",
    "\u2011": "-",
    "\u2013": "-",
}
PREFIX = r"^\W*(?:\[\d+\]\s*)?(?:\[rank ?\d+\]:|\(\w+ pid=\d+[^)]*\)|[\d,]+\]<\w+>:|E\b)?\s*"
FRAME = re.compile(PREFIX + r'(?:File ".*", line \d+|frame #\d+:|\S+\(\d+\): |│|-+> ?\d+|\d+ .*\()', re.IGNORECASE)
CARETS = re.compile(PREFIX + r"[~^]+\s*$")
RAISED = re.compile(
    PREFIX + r"(?:((?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Warning|Failed|Interrupt|Exit|Iteration))\b:?"
    r"|(?:\S+\.py|torchrun|accelerate|Accelerate CLI tool): error: )"
)
USAGE = re.compile(PREFIX + r"usage: ", re.IGNORECASE)  # the options that a parser of arguments knows
TRACEBACK = "Traceback (most recent call last)"  # an error was raised, also where its last line is cut off
WARNED = re.compile(r"(?i:\bwarn(?:ing)?\b)|\[W\d*|\bINFO\b")
NOT_WARNED = re.compile(r"NCCL WARN|Error|Exception")

# What programs in PyTorch print, and what those of several processes print.
PYTORCH = re.compile(
    r"torch|cuda|\bgpu|nccl|gloo|\brank|tensor(?!flow)|DataParallel|DataLoader|accelerate|deepspeed|lightning|ddp|fsdp",
    re.IGNORECASE,
)
SEVERAL = re.compile(
    r"\brank ?\d|local_?rank|world_?size|torchrun|distributed|c10d|nccl|gloo|\bddp|DataParallel|DataLoader|utils/data"
    r"|accelerate|deepspeed|lightning|elastic|mp\.spawn|multi.?gpu|\bgpus\b|MASTER_(PORT|ADDR)|TCPStore|SocketImpl",
    re.IGNORECASE,
)
# Other programs that compute on GPUs and print CUDA's messages, and what tells that PyTorch is among them.
OTHERS = re.compile(
    r"\bXLA\b|xla_extension|\bjax|tensorflow|tf_stack|cutlass|ggml|llama[._]?cpp|mxnet|paddlepaddle|paddle/|darknet"
    r"|\bcaffe\b|onnxruntime|TensorRT|hashcat|GPUassert|gromacs|\bOptiX|\bblender|CUDA\.jl|ollama|\bcv::|opencv",
    re.IGNORECASE,
)
TORCH = re.compile(
    r"torch|\bc10|aten\b|\bat::|accelerate|deepspeed|lightning|fsdp|\bddp\b|DataParallel|DataLoader|transformers",
    re.IGNORECASE,
)
# Frames and files of other languages: JavaScript and Java, then C, Lua, Go, Rust, Ruby and PHP.
FOREIGN = re.compile(
    r"^\s*at [\w$.<>\[\] ]+ ?\(.*:\d+\)|\w\.(c|h|js|mjs|ts|lua|java|go|rs|rb|php)\b[,:] ?\d"
    r"|luarocks|npm ERR|node:internal|\bgoroutine \d|\bjava\.\w+\.\w|thread '\w+' panicked",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Answer:
    """Entries, the likeliest first; `sure` if the text holds a message of the first, else they are a guess."""

    entries: tuple[Failure, ...]
    sure: bool


@dataclass(frozen=True)
class _Line:
    """One line of a text: what somebody was told, or only where it happened."""

    text: str
    told: bool
    raised: bool
    warned: bool


@dataclass(frozen=True)
class _Fit:
    """A pattern of an entry in a text: how much it demands, and what kind of line it ends in."""

    entry: Failure
    letters: int
    told: bool
    last: bool
    warned: bool
    doubtful: bool  # other programs print it, too, and nothing speaks of ours; or the text holds what contradicts it


@dataclass(frozen=True)
class _Demand:
    """What a symptom must do to answer a question; words count by their rarity."""

    named: float  # the share of its words that the question must hold
    explained: float  # the share of the question that they must be: the rest may name a model or a version
    telling: int = 0  # how many of these words must not be such that any question about several GPUs has them


OF_ANY = _Demand(named=0.75, explained=0.3)
OF_OURS = _Demand(named=0.75, explained=0.12)  # a question about several GPUs
LOOSE = _Demand(named=0.6, explained=0.0, telling=2)  # such a question, where little else answers it


def answer(text: str) -> Answer:
    """What the catalogue says to a text; no entries where it has nothing to say."""
    text = COLOURS.sub("", text).translate(_TYPESET)
    if FOREIGN.search(text) and not PYTORCH.search(text):
        return Answer((), sure=False)
    lines = _lines(text)
    others = bool(OTHERS.search(text) and not TORCH.search(text))
    fits = _fits(lines, several=bool(SEVERAL.search(text)), others=others)
    raised = any(line.raised for line in lines) or TRACEBACK in text
    sure = [fit for fit in fits if fit.told and not fit.doubtful and not (fit.warned and raised)]
    if sure:
        return Answer(tuple(fit.entry for fit in sorted(sure, key=_precedence)), sure=True)
    guesses = [fit.entry for fit in sorted(fits, key=_precedence)] or _guesses(text, lines)
    return Answer(tuple(guesses), sure=False)


def matching(text: str) -> list[Failure]:
    """The entries that speak of a text, the likeliest first."""
    return list(answer(text).entries)


def nearest(text: str, count: int = 3) -> list[Failure]:
    """The entries that share most words with the text, however few."""
    return [entry for entry, share in _likeness(text)[:count] if share]


def topic(text: str) -> list[Failure]:
    """The entries of a topic, where the text is no more than its name: "FSDP"; none otherwise."""
    chapters = _VOCABULARY["topics"].get(text.strip().lower(), [])
    return [entry for chapter in chapters for entry in catalogue() if entry.chapter == chapter]


def _precedence(fit: _Fit) -> tuple[bool, int, bool, bool, int]:
    """Causes before what follows from them; errors before warnings; the last error first; then the exactest pattern."""
    return (fit.doubtful, fit.entry.after, fit.warned, not fit.last, -fit.letters)


def _lines(text: str) -> list[_Line]:
    lines: list[_Line] = []
    code = usage = False  # the line under a frame shows the code there; a usage goes on in lines that are set in
    for line in text.splitlines():
        usage = bool(USAGE.match(line)) or (usage and line[:1].isspace())
        where = usage or bool(FRAME.match(line) or CARETS.match(line))
        raised = bool(RAISED.match(line)) and not where
        told = raised or not (where or code)
        lines.append(
            _Line(" ".join(line.split()), told, raised, bool(WARNED.search(line) and not NOT_WARNED.search(line)))
        )
        code = where and not (usage or CARETS.match(line) or "frame #" in line)
    return lines


def _fits(lines: list[_Line], several: bool, others: bool) -> list[_Fit]:
    """The best fit of each entry whose patterns the text holds.

    `several` if the text speaks of several processes, `others` if it is of a program that is not PyTorch's.
    """
    plain, ends = _joined(lines)
    last = max((number for number, line in enumerate(lines) if line.raised), default=-1)
    told = " ".join(line.text for line in lines if line.told)

    def fit(entry: Failure, pattern: str, doubtful: bool) -> _Fit | None:
        found = _compiled(pattern).search(plain)
        if not found:
            return None
        number = bisect_left(ends, found.end())
        line = lines[number]
        said = line.told or bool(_compiled(pattern).search(told))
        letters = len(re.sub(r"\\.|\W", "", pattern))
        return _Fit(entry, letters, said, number >= last >= 0, line.warned, doubtful)

    best = []
    for entry in catalogue():
        against = others or any(_compiled(pattern).search(plain) for pattern in entry.unless)
        tried = [fit(entry, pattern, doubtful=against) for pattern in entry.patterns]
        tried += [fit(entry, pattern, doubtful=against or not several) for pattern in entry.generic]
        fits = [found for found in tried if found is not None]
        if fits:
            best.append(min(fits, key=_precedence))
    return best


def _joined(lines: list[_Line]) -> tuple[str, list[int]]:
    """The text of all lines in one, because a message may go over several, and the place where each line ends in it."""
    texts: list[str] = []
    ends: list[int] = []
    end = 0
    for line in lines:
        if line.text:
            end += len(line.text) + (1 if texts else 0)  # the blank between two
            texts.append(line.text)
        ends.append(end)
    return " ".join(texts), ends


def _guesses(text: str, lines: list[_Line]) -> list[Failure]:
    """Entries for a question, by its words; for a traceback that no pattern knows, by its last message and place."""
    raised = [line.text for line in lines if line.raised]
    plain = raised[-1] if raised else " ".join(text.split())
    symptoms = [] if raised else _by_symptom(plain)
    asked = [entry for entry in catalogue() if any(_compiled(words).search(plain) for words in entry.words)]
    there = _at_place(lines, bool(raised))
    if raised:
        return _once([entry for entry in asked if entry in there] + there + asked) or _alike(plain)
    found = _once(symptoms + asked)
    if len(found) < CANDIDATES:
        found = _once(found + _by_symptom(plain, LOOSE))[: max(len(found), CANDIDATES)]
    return _once(found + there)[: max(len(found), CANDIDATES)] or _alike(plain)


def _at_place(lines: list[_Line], raised: bool) -> list[Failure]:
    """What mostly fails where a text says that it happened: in its last messages, and in the last frames of an error.

    Frames without the error that ends them are no answer: they say where, and nothing of what.
    """
    frames = [line.text for line in lines if not line.told][-LAST:] if raised else []
    said = [line.text for line in lines if line.told][-LAST:]
    for pattern, names in PLACES:
        if any(pattern.search(line) for line in frames + said):
            return [entry for name in names for entry in catalogue() if entry.id == name]
    return []


def _alike(plain: str) -> list[Failure]:
    return [entry for entry, share in _likeness(plain) if share > ENOUGH]


def _once(entries: list[Failure]) -> list[Failure]:
    return list(dict.fromkeys(entries))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_VOCABULARY = tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))
EMPTY = frozenset(_VOCABULARY["empty"].split())
DOMAIN = frozenset(_VOCABULARY["domain"].split())
ONE_WORD = {word: meaning for meaning, words in _VOCABULARY["same"].items() for word in words.split()}
PHRASES = [(re.compile(pattern), f" {meaning} ") for pattern, meaning in _VOCABULARY["phrases"]]
PLACES = [(re.compile(place["pattern"], re.IGNORECASE), place["entries"]) for place in _VOCABULARY["places"]]
_TYPESET = str.maketrans(TYPESET)
MISSPELT, ALIKE = 5, 0.8  # letters a word must have to be taken for a similar one, and how similar that has to be


def _meanings(text: str) -> set[str]:
    """The words of a question, each by what it means, without those that say nothing."""
    plain = re.sub(r"(?<=[a-z0-9])-(?=[a-z])", " ", re.sub(r"[`*\"]", "", text.lower()))
    for pattern, meaning in PHRASES:
        plain = pattern.sub(meaning, plain)
    words = re.findall(r"[a-z_][a-z_0-9']{1,}|-\d+|\b13[79]\b", plain)
    return {ONE_WORD.get(word, word) for word in words if word not in EMPTY} - EMPTY


def _by_symptom(plain: str, demand: _Demand | None = None) -> list[Failure]:
    """Entries one of whose symptoms a question names, the one that explains most of it first."""
    asked = {_spelt(word) for word in _meanings(plain)} - EMPTY
    said = set(re.findall(r"[a-z]+|[a-z_]+", plain.lower()))
    ours = bool(({ONE_WORD.get(word, word) for word in said} | asked) & DOMAIN)
    if not asked or (not ours and (demand or len(asked) > FEW)):
        return []
    demand = demand or (OF_OURS if ours else OF_ANY)
    rarity = _rarity()
    weight = {word: rarity.get(word, rarity[""]) for word in asked}
    scores: dict[Failure, float] = {}
    for entry, symptoms in _symptoms():
        for words in symptoms:
            shared = sum(weight[word] for word in words & asked)
            named = shared / sum(rarity.get(word, rarity[""]) for word in words)
            enough = named > demand.named and len((words & asked) - DOMAIN) >= demand.telling
            if (enough if len(words) > 2 else words <= asked) and shared > demand.explained * sum(weight.values()):
                scores[entry] = max(scores.get(entry, 0.0), shared * named**2)
    return sorted(scores, key=lambda entry: -scores[entry])


@cache
def _spelt(word: str) -> str:
    """A word that no symptom has as the similar one that some has: "eposh" is "epoch"."""
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
    """Weight of a word in a question: the fewer symptoms have it, the more; "" is for one that none has."""
    frequency = Counter(word for _, symptoms in _symptoms() for word in frozenset().union(*symptoms))
    total = 1 + sum(1 for _, symptoms in _symptoms() if symptoms)
    rarity = {word: math.log(total / count) for word, count in frequency.items()}
    return rarity | {"": math.log(total) / 2}


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
