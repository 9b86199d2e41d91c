"""Training, evaluation, prediction and checkpoints: where detector, data and devices come together."""

from frcnn_lite.data import read_image
from frcnn_lite.engine.average_precision import AveragePrecision, Judged, average_precision, class_curves
from frcnn_lite.engine.budget import averaging_decay, steps_in_epochs, steps_in_minutes
from frcnn_lite.engine.checkpoint import CheckpointError
from frcnn_lite.engine.config import TrainConfig
from frcnn_lite.engine.datasets import fit_to_data, held_out_pictures, train_pictures
from frcnn_lite.engine.detection_errors import DetectionError, find_errors
from frcnn_lite.engine.draw_boxes import draw_boxes
from frcnn_lite.engine.evaluate import evaluate, judge
from frcnn_lite.engine.logs import write_csv
from frcnn_lite.engine.param_groups import param_groups
from frcnn_lite.engine.predict import Prediction, predict, predict_file
from frcnn_lite.engine.report import precision_recall, worst_errors
from frcnn_lite.engine.reproducibility import deterministic, same_bits, seed_everything
from frcnn_lite.engine.runs import RunDirectory
from frcnn_lite.engine.train import RunStopped, TrainResult, train
from frcnn_lite.engine.trainer import Trainer, build_model
from frcnn_lite.engine.weights import Run, load_run, load_weights, save_weights

__all__ = [
    "AveragePrecision",
    "CheckpointError",
    "DetectionError",
    "Judged",
    "Prediction",
    "Run",
    "RunDirectory",
    "RunStopped",
    "TrainConfig",
    "TrainResult",
    "Trainer",
    "average_precision",
    "averaging_decay",
    "build_model",
    "class_curves",
    "deterministic",
    "draw_boxes",
    "evaluate",
    "find_errors",
    "fit_to_data",
    "held_out_pictures",
    "judge",
    "load_run",
    "load_weights",
    "param_groups",
    "precision_recall",
    "predict",
    "predict_file",
    "read_image",
    "same_bits",
    "save_weights",
    "seed_everything",
    "steps_in_epochs",
    "steps_in_minutes",
    "train",
    "train_pictures",
    "worst_errors",
    "write_csv",
]
