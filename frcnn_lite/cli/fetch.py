"""Bring a public data set into a folder, checked and unpacked; whatever interrupts it, no half of it stays.

python -m frcnn_lite fetch
python -m frcnn_lite fetch BCCD --into data
"""

import argparse
from pathlib import Path

from .console import say


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="which (default: all are listed, none is fetched)")
    parser.add_argument(
        "--into", type=Path, default=Path("data"), metavar="DIR", help="where to (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> int:
    """Fetch the data set and print what to train on."""
    from frcnn_lite.tools.fetch import DATASETS, fetch

    if options.name is None:
        for name, dataset in DATASETS.items():
            print(f"{name:<10} {dataset.about}")
        return 0
    if options.name not in DATASETS:
        raise ValueError(f"no data set {options.name!r}; there are {', '.join(DATASETS)}")
    folder = fetch(DATASETS[options.name], options.into, say).as_posix()
    print(f"python -m frcnn_lite train --data voc:{folder} --minutes 10 --out runs/{options.name}")
    return 0
