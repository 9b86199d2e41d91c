"""The catalogue of failures: what a user sees, why, and what mends it.

The entries are data, the .toml files beside this. Standard library only: who reads the catalogue may be somebody whose
torch does not work.
"""

import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

UNTESTED = ("hardware", "other library", "some runs")  # marks of entries without a program, told from their sources

CHAPTERS = {
    "scatter": "A batch is split",
    "replicas": "Inside a replica",
    "gather": "The outputs come back",
    "devices": "Tensors and their devices",
    "training": "Losses and gradients",
    "detection": "Of detectors only",
    "checkpoints": "Checkpoints",
    "distributed": "One process a GPU",
    "ddp": "The same model on every rank",
    "launching": "The launcher, and ranks that end",
    "nccl": "Collectives and NCCL",
    "sharding": "Models in shards",
    "resuming": "Training goes on from a file",
    "precision": "Half precision and its scaler",
    "loading": "The DataLoader's processes",
    "driver": "The GPU, its driver and its memory",
}


@dataclass(frozen=True)
class Thread:
    """A public issue or pull request where people met the failure."""

    repository: str
    number: int
    year: int
    title: str
    kind: str = "issues"

    @property
    def url(self) -> str:
        return f"https://github.com/{self.repository}/{self.kind}/{self.number}"

    @property
    def cited(self) -> str:
        """`pytorch/pytorch issue 52260 (2021), *title*`."""
        kind = "pull request" if self.kind == "pull" else "issue"
        return f"{self.repository} {kind} {self.number} ({self.year}), *{self.title}*"


@dataclass(frozen=True)
class Failure:
    """One entry.

    `older` are other wordings of the message: of older versions mostly, or of a library that says it in its own words.
    `patterns` are regular expressions over the text of an error, its white space made single blanks; `words` are some
    over questions, and `symptoms` are questions as people ask them. `generic` are regular expressions, too, of messages
    that programs without PyTorch print as well, so one of them is an answer only beside a sign of several processes.
    `unless` are regular expressions of what contradicts the entry, such as the frames of a library that says the same
    words for a reason of its own: in a text that holds one, the entry is a guess.
    `after` orders what follows from something else behind its cause: 0 is a cause, 1 what other ranks see of it, 2 a
    warning at the end of a run, 3 the launcher's report. `check` is one command, or one line, that tells
    whether it is this failure.

    `program` raises the error (a silent failure: the program ends in an assertion of what one would expect), `repaired`
    does not. Under the mark "until torch X" the program runs through on every newer torch, and there is nothing to
    repair if that is every supported one; under "simulated only" it acts out what hardware would do; under "hardware"
    and "other library" there is none, because it takes a GPU, a network, a system or a library that the tests lack, and
    under "some runs" there is none, because the failure is a race that no test can wait for.

    `helper` names the function of frcnn_lite whose file mends it (`python -m frcnn_lite copy`). Most entries have none:
    their repair is a line of one's own program, a setting, or nothing that code can do.

    `section` is the heading in `notebook` under which it is treated, if one does: there a pattern fits, or, where the
    notebook tells it in words of its own, all `terms` stand.
    """

    id: str
    title: str
    message: str
    patterns: tuple[str, ...]
    cause: str
    fix: str
    chapter: str
    mark: str = "today"
    raises: str = "RuntimeError"
    silent: bool = False
    older: tuple[str, ...] = ()
    generic: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    symptoms: tuple[str, ...] = ()
    after: int = 0
    check: str = ""
    program: str = ""
    repaired: str = ""
    helper: str = ""
    notebook: str = ""
    section: str = ""
    terms: tuple[str, ...] = ()
    threads: tuple[Thread, ...] = field(default=())

    @property
    def marks(self) -> str:
        """`today, silent`."""
        return f"{self.mark}, silent" if self.silent else self.mark


@cache
def catalogue() -> tuple[Failure, ...]:
    """All entries, chapter by chapter."""
    return tuple(entry for chapter in CHAPTERS for entry in _read(chapter))


def _read(chapter: str) -> list[Failure]:
    text = (Path(__file__).parent / f"{chapter}.toml").read_text(encoding="utf-8")
    return [_entry(values, chapter) for values in tomllib.loads(text)["failure"]]


def _entry(values: dict[str, Any], chapter: str) -> Failure:
    values["threads"] = tuple(Thread(**thread) for thread in values.get("threads", ()))
    for name in ("patterns", "generic", "unless", "older", "words", "symptoms", "terms"):
        values[name] = tuple(values.get(name, ()))
    return Failure(**values, chapter=chapter)
