"""Predictions and exercises: ask, run, compare; check, hint, solve; where a reader's runs lie."""

from frcnn_lite.learn.check import check, hint, solution
from frcnn_lite.learn.exercise import TODO
from frcnn_lite.learn.predict import predict, reveal
from frcnn_lite.learn.run_folder import run_folder
from frcnn_lite.learn.source import source

__all__ = ["TODO", "check", "hint", "predict", "reveal", "run_folder", "solution", "source"]
