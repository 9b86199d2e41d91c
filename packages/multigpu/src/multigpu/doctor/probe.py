"""Run in a child process what could crash or hang its parent."""

import subprocess
import sys
import tempfile
from dataclasses import dataclass

SECONDS = 120


@dataclass(frozen=True)
class Probe:
    """The outcome of a child process: whether it ended well, what it printed, and the last line of its errors."""

    ok: bool
    printed: str
    complaint: str


def probe(*arguments: str, seconds: float = SECONDS) -> Probe:
    """Run this interpreter in a child process that may crash or hang.

    Args:
        arguments: what follows `python` on the command line.
        seconds: the process is ended after this time.

    Returns:
        What it printed. After a crash, a hang or an error the Probe is not ok; nothing is raised.
    """
    # In an empty folder: `-c` puts the working folder first on the path, and it may hold a torch.py of the user's own.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as empty:
        try:
            child = subprocess.run(
                [sys.executable, *arguments],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=seconds,
                cwd=empty,
            )
        except subprocess.TimeoutExpired:
            return Probe(False, "", f"no answer after {seconds:g} s")
    errors = [line for line in child.stderr.splitlines() if line.strip()]
    complaint = errors[-1].strip() if errors else f"exit code {child.returncode} and no message"
    return Probe(child.returncode == 0, child.stdout.strip(), complaint)
