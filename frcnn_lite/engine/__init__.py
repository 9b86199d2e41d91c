"""Training, evaluation, prediction and checkpoints: where detector, data and devices come together."""

from frcnn_lite.engine.average_precision import AveragePrecision, Judged, average_precision, class_curves
from frcnn_lite.engine.checkpoint import CheckpointError
from frcnn_lite.engine.config import TrainConfig
from frcnn_lite.engine.confusion import ConfusionMatrix, confusion_matrix
from frcnn_lite.engine.datasets import Pictures
from frcnn_lite.engine.evaluate import evaluate, judge
from frcnn_lite.engine.predict import Prediction, predict
from frcnn_lite.engine.report import confusion_figure, precision_recall
from frcnn_lite.engine.resolve import fill_minutes, resolve
from frcnn_lite.engine.run_lock import RunInUseError
from frcnn_lite.engine.runs import RunDirectory
from frcnn_lite.engine.stored_run import Run, load_run, predict_file
from frcnn_lite.engine.train import RunStopped, TrainResult, train
from frcnn_lite.engine.trainer import Trainer, build_model
from frcnn_lite.engine.weights import load_weights, save_weights

__all__ = [
    "AveragePrecision",
    "CheckpointError",
    "ConfusionMatrix",
    "Judged",
    "Pictures",
    "Prediction",
    "Run",
    "RunDirectory",
    "RunInUseError",
    "RunStopped",
    "TrainConfig",
    "TrainResult",
    "Trainer",
    "average_precision",
    "build_model",
    "class_curves",
    "confusion_figure",
    "confusion_matrix",
    "evaluate",
    "fill_minutes",
    "judge",
    "load_run",
    "load_weights",
    "precision_recall",
    "predict",
    "predict_file",
    "resolve",
    "save_weights",
    "train",
]
