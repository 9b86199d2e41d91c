"""The training loop: from a configuration to a run directory, and on from where a run stopped."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

from torch.utils.data import DataLoader, Dataset
from tqdm.auto import tqdm

from frcnn_lite.data import Batch, DetectionDataset, Scene, collate
from frcnn_lite.engine.average_precision import AveragePrecision
from frcnn_lite.engine.begin import Begun, Resume, begin, save
from frcnn_lite.engine.best import BestWeights
from frcnn_lite.engine.config import TrainConfig
from frcnn_lite.engine.datasets import Pictures
from frcnn_lite.engine.evaluate import evaluate
from frcnn_lite.engine.interrupt import deferred_interrupt, ignore_interrupts
from frcnn_lite.engine.logs import StepLog
from frcnn_lite.engine.runs import Record, RunDirectory
from frcnn_lite.engine.say import progress_bar, say, saying_what_survives
from frcnn_lite.engine.step_order import StepOrder
from frcnn_lite.engine.trainer import Trainer
from frcnn_lite.parallel import any_rank, from_main_rank

OnStep = Callable[[Record], None]


@dataclass(frozen=True)
class TrainResult:
    """The outcome of a training.

    Attributes:
        run_dir: the folder of the run.
        history: one record a step ("step", "loss", each loss by name, "lr"), from step 0 also in a resumed run, with
            "AP", "AP50", "AP75" after the steps that were judged.
        evaluation: on the test pictures; None when the run was interrupted or `test_images` is 0.
        interrupted: whether Ctrl-C or SIGTERM ended it.
        seconds: spent in the steps of this call and in judging between them.
        terminated: whether it was SIGTERM, on any rank.
    """

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


class RunStopped(RuntimeError):
    """A run was interrupted before its last step, and what comes next needs all of them."""


def train(
    config: TrainConfig,
    out_dir: str | Path,
    *,
    resume: Resume = False,
    on_step: OnStep | None = None,
    progress: bool = True,
    pictures: Pictures | None = None,
) -> TrainResult:
    """Train a detector and leave `config.json`, `log.jsonl` and `checkpoint.pt` in `out_dir`, and `best.pt` if judged.

    Ctrl-C or SIGTERM (or KeyboardInterrupt from `on_step`) finishes the step, saves, says where, and returns.
    In a process group every rank calls this; they share each batch out, and rank 0 alone reads and writes `out_dir`.

    Args:
        resume: True continues the run in `out_dir`. Its configuration must equal `config` but for the number of devices
            and workers and how often it is saved and judged; the curve goes on as if it had never stopped. "auto"
            continues it if there is one, and begins it otherwise, for a cell or a job that may be started again.
        on_step: called after each step with its record, which TensorBoard, say, can be given.
        progress: show a bar on standard error, or in the notebook.
        pictures: what `resolve` has read already.

    Raises:
        FileExistsError: `out_dir` holds a run, and `resume` is False.
        RunInUseError: a different process trains in `out_dir`.
        ValueError: the configuration cannot be trained.
        CheckpointError: the checkpoint is damaged.
        FloatingPointError: a loss is not finite; all steps before it are saved.
        WriteError: the disk is full; the message names the step that is saved.
            No file of a run is lost by any of these.
    """
    pictures = pictures or Pictures()
    dataset = pictures.train(config)
    classes = len(dataset.class_names)
    if config.model.num_classes != classes:
        raise ValueError(
            f"`model.num_classes` must be {classes} for data {config.data!r}, got {config.model.num_classes}"
        )
    trainer = Trainer(config)
    with ExitStack() as held:  # the lock of the directory, on rank 0
        begun = from_main_rank(lambda: begin(trainer, out_dir, resume, held))
        if resume == "auto" and begun.step:
            say(f"{begun.run.path} holds a run: going on after {begun.step} of {config.steps} steps")
        trainer.restore(begun.state)  # on rank 0 what it has already; no other rank needs to see the file
        held_out = pictures.held_out(config) if config.test_images else None
        start = time.perf_counter()
        with saying_what_survives(begun.run), progress_bar(begun.step, config.steps, progress) as bar:
            end = _take_steps(trainer, dataset, begun, held_out, on_step, bar)
        seconds = time.perf_counter() - start
        return _result(trainer, begun, end, held_out, seconds, progress)


class _End(NamedTuple):
    """Why the steps ended, the same on every rank, and what was found after the last of them if it was judged."""

    evaluation: AveragePrecision | None
    interrupted: bool
    terminated: bool


def _take_steps(
    trainer: Trainer,
    dataset: DetectionDataset,
    begun: Begun,
    held_out: DetectionDataset | None,
    on_step: OnStep | None,
    bar: "tqdm[object]",
) -> _End:
    """Take the steps that are left, or those until somebody interrupts, and save the last one."""
    config, (run, first_step, history, _) = trainer.config, begun
    best = BestWeights(config, run, held_out, history)
    evaluation, stopping = None, False
    with StepLog(run) as log, deferred_interrupt() as interruption:
        for step, batch in enumerate(_batches(dataset, config, first_step), start=first_step):
            record = _take_step(trainer, run, step, batch)
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
                save(run, trainer, taken)
            if stopping:
                break
    stopping = stopping or any_rank(interruption.requested)  # a press during the last save
    return _End(evaluation, stopping, stopping and any_rank(interruption.terminated))


def _take_step(trainer: Trainer, run: RunDirectory, step: int, batch: Batch) -> Record:
    """The record of one step. A loss that is not finite raises, after what came before it was saved."""
    try:
        return {"step": step, **trainer.take_step(batch)}
    except FloatingPointError:
        save(run, trainer, step)  # the trainer is as it was after the last good step
        raise


def _result(
    trainer: Trainer,
    begun: Begun,
    end: _End,
    held_out: DetectionDataset | None,
    seconds: float,
    progress: bool,
) -> TrainResult:
    """The outcome: a complete run is judged, and of one that was interrupted a line says where it stopped."""
    run, config, history = begun.run, trainer.config, begun.history
    if end.interrupted:
        cause = "SIGTERM: " if end.terminated else ""
        say(f"{cause}stopped after {len(history)} of {config.steps} steps; saved {run.checkpoint_file}")
        return TrainResult(run.path, history, None, True, seconds, end.terminated)
    evaluation = end.evaluation
    if evaluation is None and held_out is not None:
        evaluation = evaluate(trainer.detector, held_out, batch_size=config.batch_size, progress=progress)
    return TrainResult(run.path, history, evaluation, False, seconds)


def _batches(dataset: DetectionDataset, config: TrainConfig, first_step: int) -> "DataLoader[Any]":
    return DataLoader(
        cast("Dataset[Scene]", dataset),  # the loader needs the methods, its type the class
        batch_sampler=StepOrder(len(dataset), config.batch_size, config.seed, first_step, config.steps),
        num_workers=config.workers,
        collate_fn=collate,
        worker_init_fn=ignore_interrupts,
    )
