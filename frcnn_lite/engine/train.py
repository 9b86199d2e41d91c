"""The training loop: from a configuration to a run directory, and on from where a run stopped."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from torch.utils.data import DataLoader, Dataset
from tqdm.auto import tqdm

from frcnn_lite.data import DetectionDataset, Scene, collate
from frcnn_lite.engine.average_precision import AveragePrecision
from frcnn_lite.engine.best import BestWeights
from frcnn_lite.engine.checkpoint import CheckpointError, load_checkpoint, require_finite, save_checkpoint
from frcnn_lite.engine.config import TrainConfig
from frcnn_lite.engine.datasets import Pictures
from frcnn_lite.engine.evaluate import evaluate
from frcnn_lite.engine.interrupt import deferred_interrupt, ignore_interrupts
from frcnn_lite.engine.logs import StepLog
from frcnn_lite.engine.run_lock import run_lock
from frcnn_lite.engine.runs import Record, RunDirectory
from frcnn_lite.engine.step_order import StepOrder
from frcnn_lite.engine.trainer import Trainer
from frcnn_lite.engine.weights import require_step
from frcnn_lite.parallel import any_rank, from_main_rank, is_main_rank
from frcnn_lite.whole_file import WriteError


@dataclass(frozen=True)
class TrainResult:
    """run_dir: where everything lies; history: one record a step ("step", "loss", each loss by name, "lr"), from step 0
    also in a resumed run, with "AP", "AP50", "AP75" after the steps that were judged; evaluation: on the test pictures,
    None when interrupted or `test_images` is 0; interrupted: whether Ctrl-C or SIGTERM ended it; seconds: spent in the
    steps of this call and in judging between them; terminated: whether it was SIGTERM, on any rank."""

    run_dir: Path
    history: list[Record]
    evaluation: AveragePrecision | None
    interrupted: bool
    seconds: float
    terminated: bool = False

    @property
    def losses(self) -> list[float]:
        """The total loss of every step: the curve."""
        return [record["loss"] for record in self.history]

    def require_all_steps(self) -> None:
        """Raise RunStopped if the run was interrupted, which names the steps and says how it goes on.

        For the last line of a notebook's cell: the stop button then stops "Run All", too, before a later cell reads an
        evaluation that nobody made.
        """
        if self.interrupted:
            raise RunStopped(
                f"the run stopped after {len(self.history)} steps and is saved in {self.run_dir}. Run the cell that "
                'trains again: with resume="auto" it goes on from there.'
            )


class Begun(NamedTuple):
    """A run directory, the number of steps already taken, their log, and the trainer's state at that point."""

    run: RunDirectory
    step: int
    history: list[Record]
    state: dict[str, Any]


class RunStopped(RuntimeError):
    """A run was interrupted before its last step, and what comes next needs all of them."""


def train(
    config: TrainConfig,
    out_dir: str | Path,
    *,
    resume: bool | Literal["auto"] = False,
    on_step: Callable[[Record], None] | None = None,
    progress: bool = True,
    pictures: Pictures | None = None,
) -> TrainResult:
    """Train a detector and leave `config.json`, `log.jsonl` and `checkpoint.pt` in `out_dir`, and `best.pt` if judged.

    resume: continue the run in `out_dir`, whose configuration must equal `config` but for the number of devices and
    workers and how often it is saved and judged; the curve goes on as if it had never stopped. "auto": continue it if
    there is one, and begin it otherwise, for a cell or a job that may be started again. on_step: called after
    each step with its record, which TensorBoard, say, can be given. pictures: what `resolve` has read already.
    Ctrl-C or SIGTERM (or KeyboardInterrupt from `on_step`) finishes the step, saves, says where, and returns.
    In a process group every rank calls this; they share each batch out, and rank 0 alone reads and writes `out_dir`.
    Raises FileExistsError when `out_dir` holds a run and `resume` is False, RunInUseError when a different process
    trains in it, ValueError for a configuration that cannot be trained, CheckpointError for a damaged checkpoint,
    FloatingPointError for a loss that is not finite, with all steps before it saved, WriteError where the disk is full,
    which names the step that is saved. No file of a run is lost by any of these.
    """
    pictures = pictures or Pictures()
    dataset = pictures.train(config)
    classes = len(dataset.class_names)
    if config.model.num_classes != classes:
        raise ValueError(
            f"model.num_classes must be {classes} for data {config.data!r}, got {config.model.num_classes}"
        )
    trainer = Trainer(config)
    with ExitStack() as held:  # the lock of the directory, on rank 0
        begun = from_main_rank(lambda: _open_run(trainer, out_dir, resume, held))
        return _go_on(trainer, dataset, pictures, begun, resume == "auto", on_step, progress)


def _go_on(
    trainer: Trainer,
    dataset: DetectionDataset,
    pictures: Pictures,
    begun: Begun,
    automatic: bool,
    on_step: Callable[[Record], None] | None,
    progress: bool,
) -> TrainResult:
    """Take the steps that are left, save and judge; `train` says how."""
    config = trainer.config
    run, first_step, history, state = begun
    if automatic and first_step and is_main_rank():
        print(f"{run.path} holds a run: going on after {first_step} of {config.steps} steps", file=sys.stderr)
    trainer.restore(state)  # on rank 0 what it has already; no other rank needs to see the file
    held_out = pictures.held_out(config) if config.test_images else None
    best = BestWeights(config, run, held_out, history)
    evaluation, stopping = None, False
    silent = not (progress and is_main_rank())
    bar = tqdm(total=config.steps, initial=first_step, disable=silent, desc="train", unit="step")
    start = time.perf_counter()
    with _saying_what_survives(run), bar, StepLog(run) as log, deferred_interrupt() as interruption:
        for step, batch in enumerate(_batches(dataset, config, first_step), start=first_step):
            try:
                record: Record = {"step": step, **trainer.take_step(batch)}
            except FloatingPointError:
                _save(run, trainer, step)  # the trainer stands as it stood after the last good step
                raise
            taken = step + 1
            evaluation = best.judge_if_due(trainer.detector, taken)
            if evaluation is not None:
                record |= {"AP": evaluation.AP, "AP50": evaluation.AP50, "AP75": evaluation.AP75}
            history.append(record)
            log.write(record)
            bar.update()
            bar.set_postfix(loss=f"{record['loss']:.3f}", refresh=False)
            try:
                if on_step is not None:
                    on_step(record)
            except KeyboardInterrupt:
                interruption.requested = True
            # A rank that stopped alone would be waited for. A press while they agree counts after the next step.
            stopping = any_rank(interruption.requested)
            if stopping or taken == config.steps or taken % config.checkpoint_every == 0:
                _save(run, trainer, taken)
            if stopping:
                break
    seconds = time.perf_counter() - start
    stopping = stopping or any_rank(interruption.requested)  # a press during the last save
    if stopping:
        terminated = any_rank(interruption.terminated)
        cause = "SIGTERM: " if terminated else ""
        _say(f"{cause}stopped after {len(history)} of {config.steps} steps; saved {run.checkpoint_file}")
        return TrainResult(run.path, history, None, True, seconds, terminated)
    if evaluation is None and held_out is not None:
        evaluation = evaluate(trainer.detector, held_out, batch_size=config.batch_size, progress=progress)
    return TrainResult(run.path, history, evaluation, False, seconds)


def _batches(dataset: DetectionDataset, config: TrainConfig, first_step: int) -> DataLoader[Scene]:
    return DataLoader(
        cast("Dataset[Scene]", dataset),  # the loader needs the methods, its type the class
        batch_sampler=StepOrder(len(dataset), config.batch_size, config.seed, first_step, config.steps),
        num_workers=config.workers,
        collate_fn=collate,
        worker_init_fn=ignore_interrupts,
    )


def _open_run(trainer: Trainer, out_dir: str | Path, resume: bool | Literal["auto"], held: ExitStack) -> Begun:
    """Begin or open a run; `held` keeps its lock."""
    if resume is True:
        RunDirectory.open(out_dir)  # where there is no run, not even a directory is made
    elif not resume:
        RunDirectory.require_free(out_dir)
    held.enter_context(run_lock(Path(out_dir)))
    if resume == "auto":
        resume = RunDirectory(Path(out_dir)).config_file.exists()
    config = trainer.config
    if not resume:
        RunDirectory.require_free(out_dir)
        if config.weights:
            trainer.start_from(config.weights)
        run = RunDirectory.create(out_dir, config)
        try:
            _save(run, trainer, 0)
        except WriteError:
            run.remove_files()
            raise
        return Begun(run, 0, [], trainer.state())
    run = RunDirectory.open(out_dir)
    stored = run.read_config()
    free = {name: getattr(config, name) for name in ("gpus", "workers", "checkpoint_every", "evaluate_every")}
    begun = replace(stored, **free)
    if begun != config:
        changed = [f.name for f in fields(config) if getattr(begun, f.name) != getattr(config, f.name)]
        raise ValueError(
            f"config differs from {run.config_file} in {', '.join(changed)}; a run can only go on as it was begun. "
            "To begin another, give another directory or delete this one."
        )
    if not run.checkpoint_file.exists():  # killed between its configuration and its first checkpoint
        if config.weights:
            trainer.start_from(config.weights)
        _save(run, trainer, 0)
    state = load_checkpoint(run.checkpoint_file)
    try:
        step = state["step"]
        require_step(step, config, run.checkpoint_file)
        trainer.restore(state["trainer"])
    except CheckpointError:
        raise
    except (KeyError, TypeError, RuntimeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{run.checkpoint_file} is not a checkpoint of this run: {error}") from error
    for weights in (state["trainer"]["model"], state["trainer"].get("average", {})):
        require_finite(weights, run.checkpoint_file)
    logged = len(run.read_log())
    history = run.cut_log(step)
    if gone := logged - len(history):
        _say(f"{run.checkpoint_file} is of step {step}: the {gone} steps logged after it are lost, and taken again")
    if len(history) < step:
        _say(f"{run.log_file} holds {len(history)} of the {step} steps before the checkpoint: the others are not known")
    return Begun(run, step, history, trainer.state())


def _save(run: RunDirectory, trainer: Trainer, step: int) -> None:
    if is_main_rank():
        state = {"step": step, "data": trainer.config.shown(), "trainer": trainer.state()}
        save_checkpoint(run.checkpoint_file, state)


def _say(line: str) -> None:
    """On standard error, once for all ranks."""
    if is_main_rank():
        print(line, file=sys.stderr)


@contextmanager
def _saying_what_survives(run: RunDirectory) -> Iterator[None]:
    """A file of the run that cannot be written ends the run; the error then names the step to go on from."""
    try:
        yield
    except WriteError as error:
        step = load_checkpoint(run.checkpoint_file)["step"]
        raise WriteError(
            f"{error}. {run.checkpoint_file} of step {step} is whole: once files can be written again, resume the run"
        ) from error
