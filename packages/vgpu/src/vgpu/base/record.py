"""What a test run learns from its processes: which tests used a virtual GPU, and which met what is not simulated.

The pytest plugin names a folder in the environment, and every process below it, whoever started it, writes lines of
JSON to a file of its own there. pytest itself says in the environment which test is running, so a rank of torchrun
knows the test that it belongs to. Without the variable nothing is written.
"""

from __future__ import annotations

import json
import operator
import os
import time
from collections.abc import Iterator
from pathlib import Path

FOLDER = "VGPUS_RECORD"
TEST = "PYTEST_CURRENT_TEST"
USED, NOT_SIMULATED, SKIPPED, ENDED = "used", "not simulated", "skipped", "ended"

_written: set[tuple[str, str, str]] = set()  # by this process: memory.py tells it often


def current_test() -> str:
    """The node id of the test that is running, or an empty text."""
    return os.environ.get(TEST, "").rpartition(" (")[0]


def write(kind: str, what: str = "", test: str | None = None) -> None:
    """Add a line about the test that is running, if a test run wants to know.

    Args:
        kind: `USED`, `NOT_SIMULATED`, `SKIPPED` or `ENDED`.
        what: what was not simulated, why it was skipped, or where its context ended.
        test: the node id, where it is not that of the running test.
    """
    folder = os.environ.get(FOLDER)
    test = current_test() if test is None else test
    if not folder or not test or (kind, test, what) in _written:
        return
    _written.add((kind, test, what))
    line = json.dumps({"kind": kind, "test": test, "what": what, "when": time.time()})
    try:
        with open(Path(folder, f"{os.getpid()}.jsonl"), "a", encoding="utf-8") as file:
            file.write(line + "\n")
    except OSError:
        pass  # a process that outlives the test run finds the folder gone


def read(folder: str) -> Iterator[tuple[str, str, str]]:
    """All lines of all processes as (kind, test, what), each once, in the order in which they were written."""
    lines = []
    for path in Path(folder).glob("*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                lines.append(json.loads(line))
            except ValueError:
                continue  # the process was killed while it wrote
    lines.sort(key=operator.itemgetter("when"))
    yield from dict.fromkeys((line["kind"], line["test"], line["what"]) for line in lines)
