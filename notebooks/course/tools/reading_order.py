"""In which order the notebooks are read, and in which part of the series each of them is."""

from pathlib import Path

from course.kit.files import NOTEBOOKS

PARTS = {
    "00": "One: DataParallel, on a net of ten lines",
    "07": "Two: one process for each GPU",
    "12": "Three: a detector",
    "23": "Four: loops into layers",
    "27": "Five: living with it",
}
AFTER = {"35": "11"}  # a notebook that is read at a different place than its number says: the one before it


def place(number: str) -> tuple[str, ...]:
    """Where a notebook comes in reading order, to sort and to compare by."""
    return (AFTER[number], number) if number in AFTER else (number,)


def paths(folder: Path = NOTEBOOKS) -> list[Path]:
    """Every numbered notebook of a folder, in reading order."""
    return sorted(folder.glob("[0-9][0-9]_*.ipynb"), key=lambda path: place(path.name[:2]))


def part_of(number: str) -> str:
    """The first notebook of the part to which a notebook belongs."""
    return max(start for start in PARTS if place(start) <= place(number))
