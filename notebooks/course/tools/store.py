"""Run the notebooks and store their outputs in one normal form: `python -m course store`.

A stored output is a promise that strict nbval holds the project to, so nothing may stand in it that depends on the
machine, the day or the person who ran it.
"""

import argparse
import hashlib
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from course.kit.live import still_outputs
from course.tools import reading_order

NOTEBOOKS = Path(__file__).resolve().parents[2]
CELL_TIMEOUT = 300
BUDGET_SECONDS = 60
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
CELL_METADATA = ("tags", "jupyter")  # all else is an editor's memory of itself
HIDDEN = {
    "bootstrap",
    "predict",
    "solution",
}  # tags of cells whose output says all that there is to read; the source opens on a click
BITMAPS = ("image/png", "image/jpeg")


def execute(path: Path) -> NotebookNode:
    """Run every cell of a notebook in a fresh kernel on virtual GPUs; returns it in normal form, the file untouched.

    Raises what `run` raises.
    """
    notebook = nbformat.read(path, as_version=4)
    run(notebook, path.parent)
    return normal_form(notebook)


def run(notebook: NotebookNode, folder: Path) -> None:
    """Run every cell in a fresh kernel that starts in `folder`, on virtual GPUs; the outputs come into `notebook`.

    Raises:
        CellExecutionError: a cell raised that does not carry the tag `raises-exception`.
        CellTimeoutError, DeadKernelError: a cell ran longer than 300 s, or its kernel died.
    """
    os.environ["FRCNN_LITE_DEVICES"] = "virtual"
    os.environ["FRCNN_LITE_LEARN"] = "off"  # nobody is there to answer
    os.environ["FRCNN_LITE_QUIET"] = "1"  # nor to be told that numba compiles, which depends on its cache
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"  # this environment's kernel, not one a user has installed as python3
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
        store_widget_state=False,
    )
    client.execute()


def normal_form(notebook: NotebookNode) -> NotebookNode:
    """The same notebook without a trace of where, when and by whom it was run or edited."""
    cells: list[NotebookNode] = []
    seen: set[str] = set()
    for cell in notebook.cells:
        kept = NotebookNode(cell_type=cell.cell_type, id=cell_id(cell, seen), source=cell.source)
        kept.metadata = nbformat.from_dict(cell_metadata(cell))
        if cell.cell_type == "code":
            kept.execution_count = cell.execution_count
            kept.outputs = [normal_output(output) for output in still_outputs(cell.outputs)]
        cells.append(kept)
    return NotebookNode(nbformat=4, nbformat_minor=5, metadata=nbformat.from_dict(METADATA), cells=cells)


def cell_metadata(cell: Mapping[str, Any]) -> dict[str, Any]:
    """What a file keeps of the metadata of a cell: its tags, and that its source is hidden where they ask for it."""
    kept = {key: cell["metadata"][key] for key in CELL_METADATA if cell["metadata"].get(key)}
    if HIDDEN & set(kept.get("tags", [])):
        kept["jupyter"] = {**kept.get("jupyter", {}), "source_hidden": True}
    return kept


def cell_id(cell: NotebookNode, seen: set[str]) -> str:
    """An id made from what the cell says, so that it survives a round trip through any editor."""
    text, salt = f"{cell.cell_type}\n{cell.source}", 0
    while (name := hashlib.sha256(f"{salt}\n{text}".encode()).hexdigest()[:8]) in seen:
        salt += 1
    seen.add(name)
    return name


def normal_output(output: NotebookNode) -> NotebookNode:
    """One still output without an error's traceback, which holds the paths of this machine."""
    kept = nbformat.from_dict(output)
    if kept.output_type == "error":
        kept.traceback = short_traceback(kept)
    return kept


def short_traceback(error: Mapping[str, Any]) -> list[str]:
    """What is stored of the traceback of an error output: its last line."""
    return [f"{error['ename']}: {error['evalue']}"]


def write(notebook: NotebookNode, path: Path) -> None:
    """Replace the file in one step: an interruption leaves the old one whole."""
    temporary = path.with_suffix(".ipynb.tmp")
    temporary.write_text(as_text(notebook), encoding="utf-8", newline="\n")
    temporary.replace(path)


def as_text(notebook: NotebookNode) -> str:
    """The text of a notebook's file."""
    return nbformat.writes(notebook).rstrip("\n") + "\n"


def comparable(notebook: NotebookNode) -> list[tuple]:
    """What makes a stored notebook stale when it changes: sources and outputs, but for the pixels of bitmaps."""
    cells = []
    for cell in normal_form(notebook).cells:
        outputs = cell.get("outputs", [])
        for output in outputs:
            for bitmap in BITMAPS:
                if bitmap in output.get("data", {}):
                    output.data[bitmap] = "bitmap"
        cells.append((cell.cell_type, cell.source, cell.get("execution_count"), outputs))
    return cells


def stale_cells(stored: NotebookNode, fresh: NotebookNode) -> list[int]:
    """The positions, from 0, of cells whose stored outputs a fresh run did not repeat."""
    pairs = zip(comparable(stored), comparable(fresh), strict=True)
    return [position for position, (old, new) in enumerate(pairs) if old != new]


def find(names: list[str]) -> list[Path]:
    """The notebooks named, or all of them, in reading order; "02", "02_scatter" and a path all name one.

    Raises:
        ValueError: a name fits no notebook.
    """
    everything = [*reading_order.paths(NOTEBOOKS), *NOTEBOOKS.glob("puzzles.ipynb")]
    if not names:
        return everything
    chosen = []
    for name in names:
        stem = Path(name).name.removesuffix(".ipynb")
        fitting = [path for path in everything if path.stem == stem or path.stem.startswith(f"{stem}_")]
        if not fitting:
            raise ValueError(f"no notebook is called {name!r}; there are {', '.join(p.stem for p in everything)}")
        chosen += fitting
    return chosen


def process(path: Path, check: bool) -> bool:
    """Run one notebook and store or compare it, saying in a line how it went."""
    start = time.monotonic()
    try:
        fresh = execute(path)
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        print(f"{path.stem}: FAILED, the file is left as it was\n{error}", flush=True)
        return False
    seconds = time.monotonic() - start
    over = f", over the budget of {BUDGET_SECONDS} s" if seconds > BUDGET_SECONDS else ""
    if check:
        stale = stale_cells(nbformat.read(path, as_version=4), fresh)
        verdict = f"STALE in cells {', '.join(map(str, stale))} (counted from 0)" if stale else "up to date"
        print(f"{path.stem}: {verdict} ({seconds:.0f} s{over})", flush=True)
        return not stale
    write(fresh, path)
    print(f"{path.stem}: stored ({seconds:.0f} s{over})", flush=True)
    return True


def main(argv: list[str] | None = None) -> int:
    """Run the notebooks named, or all; exit code 1 when one failed or, under --check, was stale."""
    parser = argparse.ArgumentParser(prog="python -m course store", description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="NN_topic", help="which notebooks (default: all, in order)")
    parser.add_argument("--check", action="store_true", help="compare with the stored outputs and write nothing")
    options = parser.parse_args(argv)
    try:
        paths = find(options.names)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    results = [process(path, options.check) for path in paths]
    return 0 if all(results) else 1
