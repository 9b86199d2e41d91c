"""Ranks that print into one pipe at the same time: what a notebook shows of them must not depend on who comes first.

The ranks here print half a line, wait until the other has printed half of its own, and then print the rest, which is
what happens to two processes without a buffer on a busy machine.
"""

import os
import subprocess
import sys
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parents[4]
HALVES = '''
import builtins, itertools, multiprocessing, os, pathlib, sys, time

whole, calls, folder = builtins.print, itertools.count(), pathlib.Path(os.environ["MEETINGS"])

def meet(place):
    """Wait for the other rank, but not for ever: it may have less to say."""
    place.mkdir(exist_ok=True)
    (place / str(os.getpid())).touch()
    end = time.monotonic() + 60
    while len(list(place.iterdir())) < 2 and time.monotonic() < end:
        time.sleep(0.01)

def halves(*words, sep=" ", end="\\n", file=None, flush=False):
    if file is not None or not ("RANK" in os.environ or multiprocessing.parent_process()):
        return whole(*words, sep=sep, end=end, file=file, flush=flush)
    text, turn = (sep or " ").join(map(str, words)) + end, next(calls)
    for half, part in enumerate((text[: len(text) // 2], text[len(text) // 2 :])):
        sys.stdout.write(part)
        sys.stdout.flush()
        meet(folder / f"{turn}.{half}")

builtins.print = halves
'''


def run_cells(notebook, parts, folder):
    """Run the first code cell of a notebook and those that hold one of `parts`; return what they print."""
    cells = [cell.source for cell in nbformat.read(ROOT / "notebooks" / notebook, as_version=4).cells
             if cell.cell_type == "code"]  # fmt: skip
    chosen = [cells[0], *(source for source in cells[1:] if any(part in source for part in parts))]
    (folder / "sitecustomize.py").write_text(HALVES)
    (folder / "meetings").mkdir()
    environment = {**os.environ, "MEETINGS": str(folder / "meetings"), "FRCNN_LITE_DEVICES": "virtual"}
    environment["PYTHONPATH"] = os.pathsep.join([str(folder), str(ROOT)])
    program = "\n".join(chosen)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT / "notebooks", env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_lines_of_two_ranks_do_not_mix(tmp_path):
    parts = ("project = ", "def run(", '"train.py"', "33.ddp")
    shown = "rank 0: gradient 4.5, backend nccl\nrank 1: gradient 4.5, backend nccl\n"
    assert shown in run_cells("33_testing_without_gpus.ipynb", parts, tmp_path)
