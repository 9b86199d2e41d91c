"""Ask a child process what could crash or hang its parent."""

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 120


@dataclass(frozen=True)
class Probe:
    """What a child process did: whether it ended well, what it printed, and its last line of complaint."""

    ok: bool
    printed: str
    complaint: str


def probe(*arguments: str, seconds: float = SECONDS) -> Probe:
    """Run this interpreter with these arguments; a crash, a hang or a missing answer becomes a Probe that is not ok."""
    # The package is found even where nobody has installed it; the working folder is an empty one, since `-c` puts it
    # first on the path and a reader's own torch.py may lie in the current one.
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as empty:
        try:
            child = subprocess.run(
                [sys.executable, *arguments],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=seconds,
                cwd=empty,
                env={**os.environ, "PYTHONPATH": path},
            )
        except subprocess.TimeoutExpired:
            return Probe(False, "", f"no answer after {seconds:g} s")
    errors = [line for line in child.stderr.splitlines() if line.strip()]
    complaint = errors[-1].strip() if errors else f"exit code {child.returncode} and no message"
    return Probe(child.returncode == 0, child.stdout.strip(), complaint)
