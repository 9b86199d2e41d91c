"""The puzzles as one notebook, by topic and from easy to hard: `python -m course puzzles` writes its cells.

The tasks, hints, solutions and checks are the lessons' own; `make notebooks` runs the notebook and stores its outputs.
"""

import inspect
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from course.kit.files import NOTEBOOKS
from course.kit.learn.by_key import find_exercise
from course.tools.generated import write_or_check
from course.tools.puzzle_topics import KEYS, TARGETS, TOPICS

if TYPE_CHECKING:
    from nbformat import NotebookNode

PUZZLES = NOTEBOOKS / "puzzles.ipynb"
WIDTH = 120  # of a line of code, as ruff breaks it
HEADER = """\
# Multi-GPU puzzles

{count} puzzles, about {hours} hours, each of them three cells: what is asked, the function that you write, and an
example with help. The signature is the specification, and the last line of a cell checks it: it says whether the
function is right, shows a call where it is not, and knows the wrong answers that people give. No GPU is needed: all
GPUs here are virtual. In an example a frame is a tensor with its shape, in the colour of its GPU, or grey on the CPU.

Of them {targets} have a *target* ◎ beside the right result: so many collectives, bytes sent, or bytes in memory at the
worst moment. To begin again, put `return learn.TODO` back; `learn.hint("...")` prints one hint after the other.
"""
SETUP = """\
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy
import torch
import torch.nn.functional as F  # noqa: F401 for your answers
from torch import Tensor, distributed, nn  # noqa: F401
from torch.cuda import Stream
from torch.nn import Linear, Module
from torch.optim import Optimizer

from course.kit import learn
from course.kit.setup import setup
from course.lessons.nb11.plan_bars import Plan
from course.tools.puzzle_topics import KEYS
from frcnn_lite import parallel  # noqa: F401

gpus = setup(gpus=2)"""
BOARD = "learn.board(KEYS)"


def notebook_page() -> str:
    """The sources of puzzles.ipynb; the outputs are those that are stored, wherever a source is as it was."""
    from nbformat.v4 import new_notebook

    from course.tools.store import as_text, normal_form

    return as_text(normal_form(new_notebook(cells=_with_stored_outputs(list(_cells())))))


def _cells() -> Iterator["NotebookNode"]:
    from nbformat.v4 import new_code_cell, new_markdown_cell

    targets = sum(key.startswith(TARGETS) for key in KEYS)
    minutes = sum(sum(topic.puzzles.values()) for topic in TOPICS)
    header = HEADER.format(count=len(KEYS), hours=round(minutes / 60), targets=targets)
    yield new_markdown_cell(header.strip())
    yield new_code_cell(SETUP, metadata={"tags": ["setup"]})
    yield new_code_cell(BOARD)
    for topic in TOPICS:
        yield new_markdown_cell(f"## {topic.title}\n\n{topic.about}")
        for key, minutes in topic.puzzles.items():
            yield new_markdown_cell(_asked(key, minutes))
            yield new_code_cell(_function(key), metadata={"tags": ["exercise"]})
            yield new_code_cell(f'learn.helps("{key}")', metadata={"tags": ["solution"]})
    yield new_markdown_cell("## How far are you?\n\nRun the cell below again whenever you like.")
    yield new_code_cell(BOARD)


def _asked(key: str, minutes: int) -> str:
    """The number, the name, the minutes, where the lesson is, and the task."""
    number, name = key.split(".")
    sign = " ◎" if key.startswith(TARGETS) else ""
    title = f"### {KEYS.index(key) + 1} · `{name}`{sign} · {minutes} minutes"
    lesson = next(NOTEBOOKS.glob(f"{number}_*.ipynb"), None)
    source = "" if lesson is None else f" (From [notebook {number}]({lesson.name}).)"
    return f"{title}\n\n{find_exercise(key).task}{source}"


def _function(key: str) -> str:
    """A starter with the signature of the reference, and the line that checks it."""
    exercise = find_exercise(key)
    head = f"def {exercise.name}{_signature(exercise.reference)}:"
    if len(head) > WIDTH:
        head = re.sub(r"\((.*)\)( -> .*)", r"(\n    \1\n)\2", head)
    return f'{head}\n    return learn.TODO\n\n\nlearn.check("{key}", {exercise.name})'


def _signature(function: object) -> str:
    """With its types, named without the modules that hold them: `Tensor`, and not `torch.Tensor`."""
    words = str(inspect.signature(function))  # type: ignore[arg-type]
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])|['\"]", "", words)


def _with_stored_outputs(cells: list["NotebookNode"]) -> list["NotebookNode"]:
    import nbformat

    from course.tools.links import is_bootstrap

    if not PUZZLES.exists():
        return cells
    before = nbformat.read(PUZZLES, as_version=4).cells
    stored: dict[str, list[NotebookNode]] = {}
    for cell in before:
        stored.setdefault(cell.source, []).append(cell)
    for cell in cells:
        if cell.cell_type == "code" and stored.get(cell.source):
            same = stored[cell.source].pop(0)
            cell.outputs, cell.execution_count = same.outputs, same.execution_count
    header, *others = cells
    return [header, *(cell for cell in before if is_bootstrap(cell)), *others]  # which `links` has written


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the file, or say under --check whether it is out of date."""
    return write_or_check("puzzles", __doc__, lambda: {PUZZLES: notebook_page()}, arguments)
