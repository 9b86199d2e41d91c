"""What the notebook calls: the pictures, the board, the clock, what a case was, and a page of results."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from random import Random
from typing import Any

from course.kit.figures import Figure
from course.kit.learn.card import Card, folded, inline
from course.kit.learn.state import is_live, recall, record
from course.kit.rank_threads import call_on_ranks
from course.lessons.nb34.bugs import KINDS, RIGHT, Kind
from course.lessons.nb34.cases import Grafted, cases_of
from course.lessons.nb34.measured import Measured, pictures
from course.lessons.nb34.plant import chosen, definitions, program
from course.lessons.nb34.symptom_board import Field, symptom_board
from frcnn_lite.whole_file import whole_file

HOUR = 3600.0  # seconds


@dataclass(frozen=True)
class Listing:
    """A program by its definitions, which are shown folded, each of them by itself."""

    text: str

    def show(self) -> Card:
        """All functions and classes; a click opens one of them, to read or to copy."""
        parts = definitions(self.text)
        return Card(
            "".join(folded(f"`{name}`", source).html for name, source in parts.items()),
            f"{len(parts)} functions and classes (folded): {', '.join(parts)}",
        )


def train_on_one_gpu(text: str) -> tuple[list[float], float]:
    """The losses of `train`, and the share of cells that are judged rightly."""
    images, boxes, labels = (getattr(pictures(), name) for name in ("images", "boxes", "labels"))
    return call_on_ranks(1, lambda: program(text)["train"](images, boxes, labels), limit=20.0)[0]


def symptoms(text: str) -> dict[str, Measured]:
    """For each kind of bug the first situation in which the program does not do what the right one does, if any."""
    found = {}
    for kind in KINDS:
        wrong = first_wrong(kind, text)
        if wrong is not None:
            found[kind.name] = wrong
    return found


def first_wrong(kind: Kind, text: str) -> Measured | None:
    """What a program gives in the first situation of a kind in which the right program gives something else."""
    for case in cases_of(kind.name)(Random(0)):
        assert isinstance(case, Grafted)
        given = case.measure(text)
        if not given.agrees(_right(case.args)):
            return given
    return None


@cache
def _right(args: tuple[Any, ...]) -> Measured:
    """What the right program gives in the situation of these arguments of a case."""
    return Grafted(args).measure(RIGHT)


def board(found: dict[str, Measured], title: str = "Ten cases on two GPUs") -> Figure:
    """The symptoms as a picture; what the reader has solved is green. `found`: of all kinds."""
    fields = [Field(kind.title, found[kind.name].words, found[kind.name].ending, _is_solved(kind)) for kind in KINDS]
    return symptom_board(fields, title)


def start_clock() -> None:
    """Begin an hour of repairs, in a live JupyterLab; what was solved before does not count."""
    if record("capstone", "start", time.time()):
        record("capstone", "before", [kind.key for kind in KINDS if _is_solved(kind)])
        print("The clock runs. `look_at_clock()` says how far you are.")
    else:
        print("The clock runs in a live JupyterLab only, where answers are kept.")


def look_at_clock() -> None:
    """Say how many minutes have gone by since the start, and how many cases were solved in the first hour."""
    start = recall("capstone", "start")
    if not isinstance(start, float):
        print("The clock was not started.")
        return
    minutes, solved = (time.time() - start) / 60, solved_in_an_hour(start)
    print(f"{minutes:.0f} minutes since the start; {solved} of {len(KINDS)} cases solved within the hour.")


def solved_in_an_hour(start: float) -> int:
    """How many cases were solved for the first time within an hour of that moment, in seconds since the epoch."""
    moments = [recall("solved_at", kind.key) for kind in KINDS if _is_solved(kind)]
    return sum(isinstance(moment, float) and 0 <= moment - start <= HOUR for moment in moments)


def post_mortem(seed: int = 0) -> Card:
    """What each bug was, and which notebooks have it: open where the reader has solved it, folded elsewhere."""
    parts = [_told(number, kind, seed) for number, kind in enumerate(KINDS, 1)]
    return Card("".join(parts), f"What the ten bugs were (folded until they are solved): {_titles(KINDS)}")


def results_page(seed: int = 0) -> str:
    """A page of markdown: what is solved, and where the series has the rest. It is yours to keep."""
    solved = [kind for kind in KINDS if _is_solved(kind)]
    lines = ["# Ten bugs", "", f"{len(solved)} of {len(KINDS)} cases solved (program {seed}).", ""]
    lines += ["| | case | solved | notebooks |", "|---|---|---|---|"]
    for number, kind in enumerate(KINDS, 1):
        lines.append(f"| {number} | {kind.title} | {'yes' if kind in solved else ''} | {', '.join(kind.notebooks)} |")
    start = recall("capstone", "start")
    if isinstance(start, float):
        lines += ["", f"Within an hour: {solved_in_an_hour(start)}."]
    return "\n".join(lines) + "\n"


def keep_results(path: str | Path) -> None:
    """Write `results_page()` to a file. Raises FileExistsError, and leaves the file, where there is one already."""
    with whole_file(Path(path), replace=False) as partial:
        partial.write_text(results_page(), encoding="utf-8")
    print(f"{path}: written.")


def _told(number: int, kind: Kind, seed: int) -> str:
    bug = chosen(seed)[kind]
    where = f"{', '.join(kind.homes)}; notebook {' and '.join(kind.notebooks)}"
    opened = " open" if _is_solved(kind) else ""
    summary = f"<summary>{number}. {escape(kind.title)}</summary>"
    return f"<details{opened}>{summary}<p><b>{escape(bug.name)}</b> ({where}). {inline(bug.told)}</p></details>"


def _titles(kinds: Sequence[Kind]) -> str:
    return "; ".join(kind.title for kind in kinds)


def _is_solved(kind: Kind) -> bool:
    return is_live() and recall("solved", kind.key) is True
