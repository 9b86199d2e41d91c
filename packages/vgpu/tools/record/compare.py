"""How the answer of a virtual GPU differs from that of a real one, and why, where that is known."""

from __future__ import annotations

import functools
import re
import tomllib
from pathlib import Path

import torch

from record.files import RECORDS, Record

SAME, WORDS, GREENER, REDDER, NOT_SIMULATED, DRAWN = (
    "the same words",
    "the same outcome in other words",
    "greener: refused there, runs here",
    "redder: runs there, refused here",
    "not simulated, and refused by name",
    "depends on numbers that are drawn, or on the order of a set",
)
KINDS = (SAME, WORDS, GREENER, REDDER, NOT_SIMULATED, DRAWN)
_NOT_SIMULATED = re.compile("virtual GPUs do not simulate|is not simulated by virtual GPUs")
REASONS = Path(RECORDS, "differences.toml")


@functools.cache
def reasons() -> dict[str, re.Pattern]:
    """Why rows differ: the reason, and an expression that matches the whole key of each of its rows."""
    table = tomllib.loads(REASONS.read_text(encoding="utf-8"))
    return {row["why"]: re.compile(row["keys"]) for row in table["reason"]}


@functools.cache
def drawn() -> re.Pattern:
    """Matches the keys of the rows that depend on a draw."""
    return re.compile(tomllib.loads(REASONS.read_text(encoding="utf-8"))["drawn"])


def refused(answer: str) -> bool:
    """Whether an answer is an error."""
    return answer.startswith(("!", "DEAD"))


def kind(key: str, real: str, virtual: str) -> str:
    """One of KINDS for the two answers to a question."""
    if real == virtual:
        return SAME
    if _NOT_SIMULATED.search(virtual):
        return NOT_SIMULATED
    if drawn().fullmatch(key):
        return DRAWN
    if refused(real) == refused(virtual):
        return WORDS
    return GREENER if refused(real) else REDDER


def differences(real: Record, virtual: dict[str, str]) -> dict[str, str]:
    """The kind of each row that was asked of both, by key."""
    return {key: kind(key, real.answers[key], answer) for key, answer in virtual.items() if key in real.answers}


def why(key: str) -> str | None:
    """The reason for the difference in a row, or None if there is none yet."""
    return next((reason for reason, pattern in reasons().items() if pattern.fullmatch(key)), None)


def unexplained(real: Record, virtual: dict[str, str]) -> list[str]:
    """The rows that differ without a reason, a line each.

    The words are those of one version of PyTorch; on a different one, what counts is whether there is an error.
    """
    same_version = torch.__version__.split(".")[:2] == real.about["torch"].split(".")[:2]
    explained = {SAME, NOT_SIMULATED, DRAWN} | (set() if same_version else {WORDS})
    return [
        f"{kind}: {key}: {real.answers[key]} / {virtual[key]}"
        for key, kind in differences(real, virtual).items()
        if kind not in explained and why(key) is None
    ]
