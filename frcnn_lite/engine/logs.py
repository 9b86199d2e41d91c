"""The log of a run: a line of `log.jsonl` for every step."""

import json
import os
from contextlib import suppress
from pathlib import Path

from frcnn_lite.engine.runs import Record, RunDirectory
from frcnn_lite.parallel import is_main_rank
from frcnn_lite.whole_file import WriteError


class StepLog:
    """Writes records to the log of `run`, from rank 0 alone, in a `with` block."""

    def __init__(self, run: RunDirectory) -> None:
        self.path = run.log_file if is_main_rank() else Path(os.devnull)
        self.file = self.path.open("a", encoding="utf-8", buffering=1)

    def write(self, record: Record) -> None:
        """Raises WriteError, which names the log."""
        try:
            self.file.write(json.dumps(record) + "\n")
        except OSError as error:
            raise WriteError.of(self.path, error) from error

    def __enter__(self) -> "StepLog":
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):  # every line was written on its own; what a full disk refused is still in the buffer
            self.file.close()
