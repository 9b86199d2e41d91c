"""Print the output of the commands, also into a pipe that its reader may close early."""

import os
import sys
from typing import TextIO


def show(text: str, stream: TextIO | None = None) -> None:
    """Print a text at once, on standard output unless a stream is given."""
    stream = stream or sys.stdout
    encoding = stream.encoding or "utf-8"
    readable = text.encode(encoding, "backslashreplace").decode(encoding)  # names of files may be no text
    try:
        print(readable, file=stream, flush=True)
    except BrokenPipeError:
        # `... | head` has read enough. Python would flush again at its end, into the same closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
