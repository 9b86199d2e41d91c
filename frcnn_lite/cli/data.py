"""Look at data before a detector does.

python -m frcnn_lite data check data/BCCD
python -m frcnn_lite data sheet --out scenes.svg
"""

import argparse

from .declare import declare

# Each is one file, `data_NAME.py`, made like any command of this folder.
KINDS = {
    "check": "look through annotated pictures: classes, sizes, and every defect by file",
    "sheet": "draw a sheet of digit scenes with their boxes",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(title="what to do", metavar="WHAT")
    for name, purpose in KINDS.items():
        declare(kinds, name, purpose, file=f"data_{name}")
