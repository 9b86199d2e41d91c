"""Predictions and exercises: ask, run, compare; check, hint, solve; where a reader's runs lie."""

from course.kit.attempt import outcome_of
from course.kit.learn.check import check, helps, hint, solution
from course.kit.learn.exercise import TODO
from course.kit.learn.predict import predict, reveal
from course.kit.learn.progress import board
from course.kit.learn.run_folder import run_folder
from course.kit.learn.source import source

__all__ = [
    "TODO",
    "board",
    "check",
    "helps",
    "hint",
    "outcome_of",
    "predict",
    "reveal",
    "run_folder",
    "solution",
    "source",
]
