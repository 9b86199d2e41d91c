"""Predictions and exercises: ask, run, compare; check, hint, solve; where a reader's runs lie."""

from course.learn.check import check, hint, solution
from course.learn.exercise import TODO
from course.learn.predict import predict, reveal
from course.learn.run_folder import run_folder
from course.learn.source import source

__all__ = ["TODO", "check", "hint", "predict", "reveal", "run_folder", "solution", "source"]
