"""What is drawn: the text of a program, with the names of the pieces that it is made of."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import indent


@dataclass(frozen=True)
class Program:
    """A training program that runs on GPUs or on the CPU, whatever devices it is given.

    Its text defines `program(gpus, record)`, or `program(rank, ranks, gpu, record)` where it is for several processes.
    """

    seed: int
    ranks: int
    pieces: frozenset[str]
    exact: bool  # float64 throughout: both runs agree to rounding; else bfloat16 is part of it
    source: str

    def __str__(self) -> str:
        return self.source


def block(lines: list[str], depth: int) -> str:
    """Lines of a program, indented; an item may itself have several lines."""
    return indent("\n".join(lines), " " * 4 * depth)
