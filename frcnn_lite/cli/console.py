"""What every command says, and the exit codes a shell reads."""

import os
import sys

BAD_INPUT, INTERRUPTED = 2, 130  # argparse's own, and 128 + SIGINT as shells have it


def say(line: str, *, on_every_rank: bool = False) -> None:
    """One line about the work, on standard error: standard output holds results alone.

    Of the processes of a torchrun only rank 0 speaks, unless one has something of its own to say.
    """
    rank = os.environ.get("RANK", "0")
    if rank == "0" or on_every_rank:
        # In one write: unbuffered, print sends the end of the line apart, and another rank may speak in between.
        sys.stderr.write(f"{line}\n" if rank == "0" else f"rank {rank}: {line}\n")
