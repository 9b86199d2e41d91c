"""Lines that every command prints, and the exit codes a shell reads."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from frcnn_lite.printable import printable

# argparse's own, and 128 + the number of the signal, as shells have it: SIGINT and SIGTERM
BAD_INPUT, INTERRUPTED, TERMINATED = 2, 130, 143
PACKAGE = Path(__file__).resolve().parents[1]


def say(line: str, *, on_every_rank: bool = False) -> None:
    """One line about the work, on standard error: standard output holds results alone.

    Of the processes of a torchrun only rank 0 speaks, unless one has something of its own to say.
    """
    rank = os.environ.get("RANK", "0")
    if rank == "0" or on_every_rank:
        line = "\n".join(map(printable, line.split("\n")))
        # In one write: unbuffered, print sends the end of the line apart, and another rank may speak in between.
        sys.stderr.write(f"{line}\n" if rank == "0" else f"rank {rank}: {line}\n")


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Within the block a warning of this package is said as what it is, without the line of code that made it."""
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], filename: str, *where: Any) -> None:
        if Path(filename).is_relative_to(PACKAGE):
            say(f"warning: {message}")
        else:
            usual(message, category, filename, *where)

    warnings.showwarning = show  # type: ignore[assignment]
    try:
        yield
    finally:
        warnings.showwarning = usual
