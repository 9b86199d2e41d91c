"""A reader's own copies of the notebooks: `make lab` opens them, `make fresh` puts them aside and starts again.

    python -m course my_notebooks                  # copy what is missing, renew what the reader has not touched
    python -m course my_notebooks --fresh 01 03    # new copies of these; what was there is kept beside them

The series in notebooks/ stays as it is stored: `git status` is clean and `make test` compares what the project wrote,
whatever a reader tries, answers and saves. Copies lie one folder beside the series, so links between notebooks and
to the documents work in both; programs and weights are found by `course.kit.files`.

The other way was tried: to read in notebooks/ itself. Predictions can be kept out of a file, and `course.tools.lab`
does that. But an answer to an exercise is an edit: git shows it, nbval compares the reader's "solved" with the stored
"not solved yet", and the next `git pull` stops at a conflict.
"""

import argparse
import hashlib
import json
import shutil
from collections.abc import Iterable
from pathlib import Path

from course.kit.files import NOTEBOOKS
from frcnn_lite.whole_file import whole_file

OWN = NOTEBOOKS.parent / "my_notebooks"
ABSENT = ""  # the digest of a file that is not there
KEPT = "before"  # the folder inside for what a fresh start puts aside
RECORD = ".copied.json"  # name of a notebook -> digest of what was copied: whoever differs from it has been written to


def bring(series: Path = NOTEBOOKS, own: Path = OWN) -> list[str]:
    """Copy the notebooks that `own` lacks and renew those that the reader has not written to; what happened, in lines.

    A notebook that the reader has written to is never replaced. A copy that nobody has touched goes when the series no
    longer has the notebook. Raises OSError when `own` cannot be written to.
    """
    own.mkdir(exist_ok=True)
    copied = _read(own)
    names = {path.name for path in series.glob("*.ipynb")}
    said = []
    for name in sorted(names):
        there, mine = digest(series / name), digest(own / name)
        if mine == ABSENT or (mine == copied.get(name) and mine != there):
            _copy(series / name, own / name)
            copied[name] = there
        elif mine == there:
            copied[name] = there
        elif copied.get(name) != there:
            said.append(f"{name}: yours is kept; the series has a newer one (make fresh ARGS={name[:2]} takes it)")
    for name in sorted(copied.keys() - names):
        if digest(own / name) == copied.pop(name):
            (own / name).unlink()
    _write(own, copied)
    return said


def afresh(chosen: Iterable[str] = (), series: Path = NOTEBOOKS, own: Path = OWN) -> list[str]:
    """New copies of the notebooks whose names begin with one of `chosen` (of all, when it is empty).

    A notebook that the reader has written to is moved into `own / "before"` first. Returns what happened, in lines.
    Raises ValueError for a beginning that no notebook has.
    """
    bring(series, own)
    chosen = tuple(chosen)
    names = sorted(path.name for path in series.glob("*.ipynb"))
    for start in chosen:
        if not any(name.startswith(start) for name in names):
            raise ValueError(f"no notebook begins with {start!r}; there are {', '.join(names)}")
    said = []
    for name in names:
        if name.startswith(chosen or "") and digest(own / name) != digest(series / name):
            aside = _free(own / KEPT / name)
            aside.parent.mkdir(exist_ok=True)
            (own / name).replace(aside)
            said.append(f"{name} is new; yours is kept as {aside.relative_to(own.parent).as_posix()}")
    bring(series, own)
    return said or ["nothing to do: your copies are as the series has them"]


def digest(path: Path) -> str:
    """What tells one content from a different one; `ABSENT` where no file is."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ABSENT


def _copy(source: Path, target: Path) -> None:
    with whole_file(target, replace=True) as partial:
        shutil.copyfile(source, partial)


def _free(path: Path) -> Path:
    """`path`, or with a number where something has that name."""
    tries = (path.with_stem(f"{path.stem} {number}") for number in range(2, 1000))
    return next(free for free in (path, *tries) if not free.exists())


def _read(own: Path) -> dict[str, str]:
    """The record; without one, or with one that somebody has damaged, every copy counts as written to."""
    try:
        record = json.loads((own / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _write(own: Path, copied: dict[str, str]) -> None:
    with whole_file(own / RECORD, replace=True) as partial:
        partial.write_text(json.dumps(copied, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m course my_notebooks", description=__doc__.partition("\n")[0])
    parser.add_argument("--fresh", nargs="*", metavar="NN", help="start again with these notebooks, or with all")
    chosen = parser.parse_args(arguments).fresh
    try:
        said = bring() if chosen is None else afresh(chosen)
    except (ValueError, OSError) as error:
        parser.exit(1, f"{error}\n")
    print(*said, sep="\n" if said else "", end="\n" if said else "")
    return 0
