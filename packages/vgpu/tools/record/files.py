"""Records as files: JSON lines, gzipped; the first tells the card, the version of torch and the day."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import NamedTuple

RECORDS = Path(__file__).resolve().parents[2] / "tests" / "hardware"


class Record(NamedTuple):
    """The answers of one machine by key, and of what: `card`, `torch`, `date`."""

    about: dict[str, str]
    answers: dict[str, str]


def read(path: Path) -> Record:
    """A record.

    Raises:
        ValueError: if the file is none.
    """
    with gzip.open(path, "rt", encoding="utf-8") as file:
        about = json.loads(next(file, "[]"))
        if not isinstance(about, dict) or {"card", "torch", "date"} - set(about):
            raise ValueError(f"{path} is not a record: its first line has to tell `card`, `torch` and `date`")
        return Record(about, dict(json.loads(line) for line in file))


def write(path: Path, record: Record) -> None:
    """Write a record, its rows sorted; the same rows give the same file."""
    lines = [record.about, *sorted(record.answers.items())]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def of_hardware() -> list[Record]:
    """The records of real cards, which are kept beside the tests."""
    return [read(path) for path in sorted(RECORDS.glob("*.jsonl.gz"))]
