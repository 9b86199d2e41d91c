"""Where a notebook's training runs lie, so that a reader who comes back finds them."""

import tempfile
from pathlib import Path

from course.kit.learn.state import is_live


def run_folder(notebook: str) -> Path:
    """A directory for the runs of the notebook of that number, "20" say; it exists.

    For a reader it is `runs/20` beside the notebook: a kernel that was restarted finds what the last one trained, and
    the reader can look at it, keep it or delete it. A program that executes the notebook (nbval, continuous
    integration) gets an empty temporary directory each time, and so does a reader whose folder cannot be written to.
    """
    if is_live():
        folder = Path("runs") / notebook
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except OSError as error:
            print(f"{folder} cannot be written to ({error.strerror}); runs of this kernel lie in a temporary folder")
    return Path(tempfile.mkdtemp(prefix=f"runs_{notebook}_"))
