"""The first step of a run: begin it in an empty directory, or open it where it stopped."""

from contextlib import ExitStack
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from frcnn_lite.engine.checkpoint import CheckpointError, load_checkpoint, require_finite, save_checkpoint
from frcnn_lite.engine.config import TrainConfig
from frcnn_lite.engine.run_lock import run_lock
from frcnn_lite.engine.runs import Record, RunDirectory
from frcnn_lite.engine.say import say
from frcnn_lite.engine.stored_run import require_step
from frcnn_lite.engine.trainer import Trainer
from frcnn_lite.parallel import is_main_rank
from frcnn_lite.whole_file import WriteError

Resume = bool | Literal["auto"]
MAY_CHANGE = ("gpus", "workers", "checkpoint_every", "evaluate_every")  # in a run that goes on; all else stays


class Begun(NamedTuple):
    """A run that can take its next step.

    Attributes:
        run: its directory.
        step: how many steps it has taken.
        history: their log.
        state: the trainer's state after them.
    """

    run: RunDirectory
    step: int
    history: list[Record]
    state: dict[str, Any]


def begin(trainer: Trainer, out_dir: str | Path, resume: Resume, held: ExitStack) -> Begun:
    """Begin or open the run in `out_dir`; `engine.train` says what `resume` means and what is raised. For rank 0 alone.

    Args:
        held: keeps the lock of the directory.
    """
    if resume is True:
        RunDirectory.open(out_dir)  # where there is no run, not even a directory is made
    elif not resume:
        RunDirectory.require_free(out_dir)
    held.enter_context(run_lock(Path(out_dir)))
    if resume == "auto":
        resume = RunDirectory(Path(out_dir)).config_file.exists()
    return _open(trainer, out_dir) if resume else _create(trainer, out_dir)


def save(run: RunDirectory, trainer: Trainer, step: int) -> None:
    """The checkpoint of `step`, written by rank 0."""
    if is_main_rank():
        state = {"step": step, "data": trainer.config.shown(), "trainer": trainer.state()}
        save_checkpoint(run.checkpoint_file, state)


def _create(trainer: Trainer, out_dir: str | Path) -> Begun:
    RunDirectory.require_free(out_dir)
    if trainer.config.weights:
        say(trainer.start_from(trainer.config.weights))
    run = RunDirectory.create(out_dir, trainer.config)
    try:
        save(run, trainer, 0)
    except WriteError:
        run.remove_files()
        raise
    return Begun(run, 0, [], trainer.state())


def _open(trainer: Trainer, out_dir: str | Path) -> Begun:
    run = RunDirectory.open(out_dir)
    _require_same(run, trainer.config)
    if not run.checkpoint_file.exists():  # killed between its configuration and its first checkpoint
        if trainer.config.weights:
            trainer.start_from(trainer.config.weights)
        save(run, trainer, 0)
    step = _restore(trainer, run)
    return Begun(run, step, _cut_log(run, step), trainer.state())


def _require_same(run: RunDirectory, config: TrainConfig) -> None:
    """Raises ValueError where `config` differs from that of the run in more than may change."""
    begun = replace(run.read_config(), **{name: getattr(config, name) for name in MAY_CHANGE})
    if begun != config:
        changed = [f.name for f in fields(config) if getattr(begun, f.name) != getattr(config, f.name)]
        raise ValueError(
            f"`config` differs from {run.config_file} in {', '.join(changed)}; a run can only go on as it was begun. "
            "To begin another, give another directory or delete this one."
        )


def _restore(trainer: Trainer, run: RunDirectory) -> int:
    """Put the trainer where the checkpoint of `run` is, and return its step."""
    state = load_checkpoint(run.checkpoint_file)
    try:
        step = state["step"]
        require_step(step, trainer.config, run.checkpoint_file)
        trainer.restore(state["trainer"])
    except CheckpointError:
        raise
    except (KeyError, TypeError, RuntimeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{run.checkpoint_file} is not a checkpoint of this run: {error}") from error
    for weights in (state["trainer"]["model"], state["trainer"].get("average", {})):
        require_finite(weights, run.checkpoint_file)
    return step


def _cut_log(run: RunDirectory, step: int) -> list[Record]:
    """The log of the steps before the checkpoint; those that were logged after it are dropped, and taken again."""
    logged = len(run.read_log())
    history = run.cut_log(step)
    if gone := logged - len(history):
        say(f"{run.checkpoint_file} is of step {step}: the {gone} steps logged after it are lost, and taken again")
    if len(history) < step:
        say(f"{run.log_file} holds {len(history)} of the {step} steps before the checkpoint: the others are not known")
    return history
