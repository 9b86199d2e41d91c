"""Ask a child process what could crash or hang its parent."""

import subprocess
import sys
import tempfile
from dataclasses import dataclass

SECONDS = 120


@dataclass(frozen=True)
class Probe:
    """What a child process did: whether it ended well, what it printed, and its last line of complaint."""

    ok: bool
    printed: str
    complaint: str


def probe(*arguments: str, seconds: float = SECONDS) -> Probe:
    """Run this interpreter with these arguments; a crash, a hang or a missing answer becomes a Probe that is not ok."""
    # In an empty folder: `-c` puts the working folder first on the path, and a reader's own torch.py may lie in it.
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
