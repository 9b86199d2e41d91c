"""A run is a directory: `config.json`, `log.jsonl` (one line a step), `checkpoint.pt`; `best.pt` where it is judged."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frcnn_lite.engine.config import TrainConfig
from frcnn_lite.whole_file import whole_file

Record = dict[str, Any]  # of one step: "step" and its numbers by name


@dataclass(frozen=True)
class RunDirectory:
    """The files of one run, by their names."""

    path: Path

    @property
    def config_file(self) -> Path:
        return self.path / "config.json"

    @property
    def log_file(self) -> Path:
        return self.path / "log.jsonl"

    @property
    def checkpoint_file(self) -> Path:
        return self.path / "checkpoint.pt"

    @property
    def best_file(self) -> Path:
        return self.path / "best.pt"

    @classmethod
    def require_free(cls, path: str | Path) -> "RunDirectory":
        """The directory, without a run in it. Raises FileExistsError otherwise: nothing is ever overwritten."""
        run = cls(Path(path))
        if run.path.exists() and not run.path.is_dir():
            raise FileExistsError(f"{run.path} is a file; a run needs a directory")
        for file in (run.config_file, run.log_file, run.checkpoint_file, run.best_file):
            if file.exists():
                raise FileExistsError(f"{run.path} holds a run already ({file.name}); resume it or choose another name")
        return run

    @classmethod
    def create(cls, path: str | Path, config: TrainConfig) -> "RunDirectory":
        """Start a run at `path`, which is made if need be. Raises FileExistsError as `require_free` does."""
        run = cls.require_free(path)
        run.path.mkdir(parents=True, exist_ok=True)
        _write(run.config_file, config.to_json())
        run.log_file.touch()
        return run

    @classmethod
    def open(cls, path: str | Path) -> "RunDirectory":
        """A run that exists. Raises FileNotFoundError."""
        run = cls(Path(path))
        if not run.config_file.is_file():
            raise FileNotFoundError(f"no run at {run.path}: {run.config_file.name} is missing")
        return run

    def read_config(self) -> TrainConfig:
        """Raises ValueError that names the file when it is damaged."""
        try:
            return TrainConfig.from_json(self.config_file.read_text(encoding="utf-8"))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{self.config_file} cannot be read: {error}") from error

    def read_log(self, before_step: int | None = None) -> list[Record]:
        """The records of the steps, in order, up to but without `before_step`.

        A last line that a crash cut short is left out; any other broken line raises ValueError.
        """
        lines = self.log_file.read_text(encoding="utf-8").splitlines() if self.log_file.is_file() else []
        records = []
        for number, line in enumerate(lines, start=1):
            try:
                record = json.loads(line)
            except ValueError:
                record = None
            if isinstance(record, dict) and "step" in record:
                records.append(record)
            elif number < len(lines):
                raise ValueError(f"{self.log_file} line {number} is not a record of a step: {line[:40]!r}")
        return [record for record in records if before_step is None or record["step"] < before_step]

    def cut_log(self, before_step: int) -> list[Record]:
        """Drop what was logged after the checkpoint of `before_step`: those steps are about to be taken again."""
        records = self.read_log(before_step)
        _write(self.log_file, "".join(json.dumps(record) + "\n" for record in records))
        return records

    def remove_files(self) -> None:
        """Remove what `create` made: a run that could not save its first step is not a run, and blocks the next try."""
        for file in (self.config_file, self.log_file):
            file.unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    """All or nothing, like a checkpoint."""
    with whole_file(path, replace=True) as partial:
        partial.write_text(text, encoding="utf-8")
