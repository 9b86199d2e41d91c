"""`python -m vgpu autostart --install`: from then on `VGPUS=4 python train.py` is virtual in this environment.

A file of one line is added to the environment's site-packages, which every interpreter of it reads at start-up. Nobody
who installs the package gets it without asking; `--remove` takes it away. pip does not know of the file, so remove it
before you uninstall the package; where it is left behind, its line finds no package and does nothing.
"""

from __future__ import annotations

import argparse
import sysconfig
from pathlib import Path

LINE = (
    'import os; os.environ.get("VGPUS") and __import__("importlib.util").util.find_spec("vgpu")'
    ' and __import__("vgpu.startup")\n'
)


def start_file() -> Path:
    """Where the line is, or would be."""
    return Path(sysconfig.get_path("purelib")) / "vgpu_autostart.pth"


def main(argv: list[str]) -> int:
    """Add the start-up file, take it away, or say whether it is there."""
    parser = argparse.ArgumentParser(prog="python -m vgpu autostart", description=__doc__)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--install", action="store_true", help="add the start-up file to this environment")
    choice.add_argument("--remove", action="store_true", help="take it away again")
    options = parser.parse_args(argv)
    file = start_file()
    try:
        if options.install:
            file.write_text(LINE, encoding="utf-8")
        if options.remove:
            file.unlink(missing_ok=True)
    except OSError as error:
        parser.error(f"cannot change {file}: {error.strerror}")
    print(
        f"{file}: VGPUS=N works in this environment" if file.exists() else f"{file}: not there, so VGPUS=N does nothing"
    )
    return 0
