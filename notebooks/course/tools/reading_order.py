"""In which order the notebooks are read, and in which part of the series each of them is."""

from dataclasses import dataclass
from pathlib import Path

from course.kit.files import NOTEBOOKS

PARTS = {
    "00": "One: DataParallel, on a net of ten lines",
    "07": "Two: one process for each GPU",
    "12": "Three: a detector",
    "23": "Four: who has to send what to whom",
    "27": "Five: living with it",
    "18": "Appendix: the guide of 2017",
}
# A notebook that is read at a different place than its number says: the one before it.
AFTER = {"35": "11", "36": "11", "17": "26", "16": "29", "18": "34", "19": "34"}


@dataclass(frozen=True)
class Route:
    """Some of the notebooks, in the order in which they are read, and what their reader is able to do afterwards."""

    name: str
    numbers: tuple[str, ...]
    able: str


ROUTES = (
    Route(
        "An evening", ("00", "01", "03"), "you find rows that a step lost, and repair a loss that changes with the GPUs"
    ),
    Route(
        "A weekend",
        ("00", "01", "03", "07", "08", "09", "10", "11", "35"),
        "you bring a training to many processes and machines, and say which rank a run waits for",
    ),
    Route(
        "For DDP and FSDP2 alone",
        ("07", "08", "10", "11", "35"),
        "the same without DataParallel; nothing before 07 is needed",
    ),
)


def place(number: str) -> tuple[str, ...]:
    """Where a notebook comes in reading order, to sort and to compare by."""
    return (AFTER[number], number) if number in AFTER else (number,)


def paths(folder: Path = NOTEBOOKS) -> list[Path]:
    """Every numbered notebook of a folder, in reading order."""
    return sorted(folder.glob("[0-9][0-9]_*.ipynb"), key=lambda path: place(path.name[:2]))


def part_of(number: str) -> str:
    """The first notebook of the part to which a notebook belongs."""
    return max((start for start in PARTS if place(start) <= place(number)), key=place)
