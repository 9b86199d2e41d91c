"""Lines and a bar on standard error while a detector is trained, once for all ranks."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tqdm.auto import tqdm

from frcnn_lite.engine.checkpoint import load_checkpoint
from frcnn_lite.engine.runs import RunDirectory
from frcnn_lite.parallel import is_main_rank
from frcnn_lite.whole_file import WriteError


def say(line: str) -> None:
    """On standard error, from rank 0."""
    if is_main_rank():
        print(line, file=sys.stderr)


def progress_bar(taken: int, steps: int, progress: bool) -> "tqdm[object]":
    """The bar of a run that has taken some of its steps, on rank 0 alone; without `progress` it shows nothing."""
    silent = not (progress and is_main_rank())
    return tqdm(total=steps, initial=taken, disable=silent, desc="train", unit="step")


@contextmanager
def saying_what_survives(run: RunDirectory) -> Iterator[None]:
    """A file of the run that cannot be written ends the run; the error then names the step to go on from."""
    try:
        yield
    except WriteError as error:
        step = load_checkpoint(run.checkpoint_file)["step"]
        raise WriteError(
            f"{error}. {run.checkpoint_file} of step {step} is whole: once files can be written again, resume the run"
        ) from error
