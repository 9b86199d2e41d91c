"""What a run writes down of every step: a line of `log.jsonl`, the one source, and other forms made from it."""

import csv
import importlib.util
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from frcnn_lite.engine.runs import Record, RunDirectory
from frcnn_lite.parallel import is_main_rank
from frcnn_lite.whole_file import WriteError, whole_file


class StepLog:
    """Writes records to the log of `run`, and to TensorBoard if asked for, from rank 0 alone. Close it, or use `with`.

    history: the records that are in the log already.
    """

    def __init__(self, run: RunDirectory, history: Sequence[Record], *, tensorboard: bool = False) -> None:
        self.path = run.log_file if is_main_rank() else Path(os.devnull)
        self.file = self.path.open("a", encoding="utf-8", buffering=1)
        self.board = _board(run.tensorboard_dir, history) if tensorboard and is_main_rank() else None

    def write(self, record: Record) -> None:
        """Raises WriteError, which names the log."""
        try:
            self.file.write(json.dumps(record) + "\n")
        except OSError as error:
            raise WriteError.of(self.path, error) from error
        if self.board:
            _add(self.board, record)

    def __enter__(self) -> "StepLog":
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):  # every line was written on its own; what a full disk refused is still in the buffer
            self.file.close()
        if self.board:
            self.board.close()


def require_tensorboard() -> None:
    """Raises ModuleNotFoundError that says what to install."""
    if importlib.util.find_spec("tensorboard") is None:
        message = 'TensorBoard logs need the package tensorboard: pip install "frcnn_lite[tensorboard]"'
        raise ModuleNotFoundError(message, name="tensorboard")


def write_csv(history: Sequence[Record], path: str | Path) -> None:
    """Write records as CSV, one line a step; what was not measured in a step is empty.

    Raises FileExistsError, WriteError.
    """
    columns = dict.fromkeys(name for record in history for name in record)
    with whole_file(Path(path)) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(history)


def _board(directory: Path, history: Sequence[Record]) -> Any:
    """A writer that holds exactly `history`: after a crash TensorBoard had steps that are about to be taken again."""
    from torch.utils.tensorboard import SummaryWriter

    board = SummaryWriter(str(directory), purge_step=0)
    for record in history:
        _add(board, record)
    return board


def _add(board: Any, record: Record) -> None:
    for name, value in record.items():
        if name != "step":
            board.add_scalar(name, value, record["step"])
