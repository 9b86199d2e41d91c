"""pytest in a process of its own, on a machine that shows no GPU, and the lines of its report that matter."""

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

SECONDS = 200.0  # a guard against a run that never ends; one takes five, and a multiple of it on a busy machine
OURS = ("FRCNN_LITE", "PYTEST", "CI", "VGPUS")  # variables that would tell the run about this machine's own tests
WANTED = re.compile(r"E +[\w.]+Error: (?!Caught)|FAILED|SKIPPED|\d+ (passed|failed)")  # no paths, no progress


def run_pytest(project: Path, *arguments: str) -> str:
    """Run the tests in `project`, print what matters of the report, and return its last line, without the time.

    The plugin of virtual GPUs is loaded, and none that is installed: to load the others takes longer than the tests.
    """
    plugins = [*(f"-pno:{entry.name}" for entry in entry_points(group="pytest11")), "-pvgpu.pytest_plugin"]
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "--color=no", "-p", "no:cacheprovider", *plugins]
    env = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    env |= {"CUDA_VISIBLE_DEVICES": "", "COLUMNS": "160", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [*command, *arguments], cwd=project, env=env, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    lines = what_matters(done.stdout)
    if not lines:
        raise RuntimeError(f"pytest did not report: {done.stdout}{done.stderr}")
    print("\n".join(lines))
    return lines[-1]


def what_matters(report: str) -> list[str]:
    """Errors in torch's words, failed and skipped tests, and the counts, without what differs from run to run."""
    kept = [line.split(" has a total")[0][:150] for line in report.splitlines() if WANTED.match(line)]
    return [re.sub(r" in \d[^ ]*s( \(.*\))?$", "", line) for line in kept]
