"""How a step ends, in a few words: what the error says, or that there is none."""

from collections.abc import Callable
from typing import Any

from course.kit.attempt import last_line


def says(run: Callable[[], Any]) -> str:
    """The first sentence of the RuntimeError that `run` raises, without the traceback of a replica; else "works"."""
    try:
        run()
    except RuntimeError as error:
        return last_line(error).split(". ")[0]
    return "works"
