"""The catalogue of failures: what a user sees, why, and what mends it.

The entries are data, in the .toml files beside this module. It imports the standard library alone, because a reader of
the catalogue may be somebody whose torch does not work.
"""

import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

UNTESTED = ("hardware", "other library", "some runs")  # marks of entries that have no program and rest on their sources

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
    """One entry of the catalogue.

    Attributes:
        id: its name, which is also the address of its page.
        title: what happens, in a few words.
        message: the error text, or what is seen instead of one.
        older: other wordings of the message, mostly of older versions or of a library that has its own.
        patterns: regular expressions that find the entry in the text of an error; white space is a single blank there.
        generic: such expressions of messages that programs without PyTorch print as well. One of them is an answer only
            if the text also shows a sign of several processes.
        unless: regular expressions of what contradicts the entry, such as the frames of a library that has the same
            message for a different reason. In a text that one of them fits, the entry is only a guess.
        symptoms: questions as people ask them.
        printed_by: the library whose own words the message has, "torch" or "nccl": a test looks them up in the
            installed one. "torch until 2.6": no newer version has them, which the test looks up as well.
        fixed: the parts of the message that this library prints word by word, between names and numbers.
        after: ranks consequences behind causes: 0 is a cause, 1 what other ranks see of it, 2 a warning at the end of a
            run, 3 the report of the launcher.
        cause: why it happens.
        check: a command, or one line, that shows whether it is this failure.
        fix: what mends it.
        chapter: a key of CHAPTERS.
        mark: how the entry is tested. "today": the program fails and the repaired one runs. "until torch X": the
            program runs on every newer torch; there is no repaired one if that is every supported torch. "simulated
            only": the program acts out what hardware would do. The marks in UNTESTED have no program: "hardware" and
            "other library" need what the tests lack, and "some runs" is a race that no test can wait for.
        raises: the name of the exception that the program raises.
        silent: nothing is raised; the program ends in an assertion of what one would expect.
        program: raises the error.
        repaired: the same program without the failure.
        helper: the function of frcnn_lite whose file mends it (`python -m frcnn_lite copy`). Most entries have none,
            because their repair is a line of the user's program, a setting, or nothing that code can do.
        notebook: the number of the notebook that treats the failure, if one does.
        section: its heading there. One of the expressions fits in this section, or all `terms` are in it.
        terms: words of a section that treats the failure without its message.
        threads: where people met it.
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
    symptoms: tuple[str, ...] = ()
    printed_by: str = ""
    fixed: tuple[str, ...] = ()
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
    for name in ("patterns", "generic", "unless", "older", "symptoms", "fixed", "terms"):
        values[name] = tuple(values.get(name, ()))
    return Failure(**values, chapter=chapter)
