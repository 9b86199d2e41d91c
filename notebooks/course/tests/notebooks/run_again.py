"""A program for tests: runs the cells of a notebook as an impatient reader does, and says what comes out differently.

    python run_again.py NOTEBOOK...

First from top to bottom, each cell twice in place; then from the last cell back to the first. After every run the
outputs have to be those that are stored, as far as nbval compares them. It prints a dict as JSON: for each notebook the
list of what was different, or what a cell raised where the stored one does not.

There is no kernel, only IPython's shell, so a widget has nobody to speak to and leaves its line of text. Each notebook
has a process of its own. Where processes can be forked, what every notebook imports is imported once: that takes longer
than most of their cells.
"""

import importlib
import json
import multiprocessing
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import nbformat
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from nbformat.v4 import new_output
from nbval.plugin import get_sanitize_patterns

from course.kit.live import still_outputs
from course.tools.store import BITMAPS

SANITIZE = get_sanitize_patterns(Path(__file__).with_name("nbval_sanitize.cfg").read_text(encoding="utf-8"))
Output = dict[str, Any]


class QuietShell(InteractiveShell):
    """Keeps what a cell raised and prints no traceback."""

    def showtraceback(self, *args: Any, **kwargs: Any) -> None:
        pass

    showsyntaxerror = showtraceback


def differences(notebook: nbformat.NotebookNode) -> Iterator[str]:
    """What a cell shows that is not what is stored, run by run."""
    shell = QuietShell.instance()
    code = [(k, cell) for k, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    runs = [(k, cell, words) for k, cell in code for words in ("run once", "run twice")]
    runs += [(k, cell, "run after the later ones") for k, cell in reversed(code)]
    for k, cell, words in runs:
        stored, found = compared(cell.outputs), compared(run(shell, cell.source))
        for kind in sorted(stored.keys() | found.keys()):
            if stored.get(kind) != found.get(kind):
                yield f"cell {k}, {words}, {kind}: {found.get(kind)} and not {stored.get(kind)}"


def run(shell: InteractiveShell, source: str) -> list[Output]:
    """What one run of a cell shows."""
    with shell.display_trap, capture_output() as captured:  # entered before, so that the capturing hook stays in place
        ran = shell.run_cell(source)
    shown = [new_output("stream", name="stdout", text=captured.stdout)] if captured.stdout else []
    shown += [new_output("stream", name="stderr", text=captured.stderr)] if captured.stderr else []
    shown += [new_output("display_data", data=rich.data, metadata=rich.metadata or {}) for rich in captured.outputs]
    if error := ran.error_before_exec or ran.error_in_exec:
        shown.append(new_output("error", ename=type(error).__name__, evalue=str(error)))
    return shown


def compared(outputs: Sequence[Output]) -> dict[str, list[str]]:
    """The texts of outputs by their kind, sanitised. As in nbval the order of different kinds does not count."""
    texts: dict[str, list[str]] = {}
    for output in still_outputs(outputs):
        parts = dict(output.get("data", {}))
        parts |= {key: output[key] for key in ("ename", "evalue") if key in output}
        if "text" in output:
            parts[output["name"]] = output["text"]
        for kind, text in parts.items():
            if kind not in BITMAPS:
                texts.setdefault(kind, []).append(sanitised(str(text)))
    return texts


def sanitised(text: str) -> str:
    for regex, replacement in SANITIZE:
        text = re.sub(regex, replacement, text)
    return text


def judge(path: str) -> list[str]:
    return list(differences(nbformat.read(path, as_version=4)))


def imported_by_all() -> None:
    """Import what the notebooks of part one import, and start nothing: a thread would not survive the fork."""
    for name in ("torch._dynamo", "sklearn.datasets", "course.kit.step_trace", "course.kit.learn", "multigpu.doctor"):
        importlib.import_module(name)


if __name__ == "__main__":
    forks = sys.platform == "linux"
    if forks:
        imported_by_all()
    with multiprocessing.get_context("fork" if forks else "spawn").Pool(1, maxtasksperchild=1) as pool:
        print(json.dumps(dict(zip(sys.argv[1:], pool.imap(judge, sys.argv[1:]), strict=True))))
