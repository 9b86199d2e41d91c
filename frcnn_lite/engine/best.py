"""Judging a detector while it is trained, and keeping the best weights of a run."""

from dataclasses import asdict

from frcnn_lite.data import DetectionDataset
from frcnn_lite.detection import FasterRCNN
from frcnn_lite.engine.average_precision import AveragePrecision
from frcnn_lite.engine.checkpoint import save_checkpoint
from frcnn_lite.engine.config import TrainConfig
from frcnn_lite.engine.evaluate import evaluate
from frcnn_lite.engine.runs import Record, RunDirectory
from frcnn_lite.parallel import is_main_rank


class BestWeights:
    """Keeps `run.best_file`, which `load_weights` reads, at the weights of the highest AP so far, the first on ties.

    Args:
        pictures: those to judge on; None judges never.
        history: the log of the steps already taken. What was best is read from there: the log is the one source, and a
            file that a crash left ahead of the log is written again when its step is taken again.
    """

    def __init__(
        self, config: TrainConfig, run: RunDirectory, pictures: DetectionDataset | None, history: list[Record]
    ):
        self.config, self.run, self.pictures = config, run, pictures
        self.highest = max((record["AP"] for record in history if "AP" in record), default=-1.0)

    def judge_if_due(self, model: FasterRCNN, step: int) -> AveragePrecision | None:
        """How good `model` is after `step` steps, if that is to be known; its weights are kept if it never was better.

        Every rank calls this. Draws no random number, so that the curve does not depend on how often it is judged.
        """
        every = self.config.evaluate_every
        if self.pictures is None or not every or step % every:
            return None
        found = evaluate(model, self.pictures, batch_size=self.config.batch_size)
        if self.highest < found.AP:
            self.highest = found.AP
            if is_main_rank():
                weights = {"config": asdict(model.config), "weights": model.state_dict()}
                save_checkpoint(self.run.best_file, {"step": step, "data": self.config.shown(), **weights})
        return found
