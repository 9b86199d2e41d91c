"""Bring a public data set into a folder, checked and unpacked; whatever interrupts it, no half of it stays.

python -m course fetch
python -m course fetch BCCD --into data
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from course.tools.fetch import DATASETS, fetch

BAD_INPUT, INTERRUPTED = 2, 130  # argparse's own, and 128 + the number of the signal, as shells have it


def main(argv: Sequence[str] | None = None) -> int:
    """Fetch the data set and print what to train on; without a name, list what there is."""
    parser = argparse.ArgumentParser(
        prog="python -m course fetch", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?", choices=DATASETS, help="which (default: all are listed, none is fetched)")
    parser.add_argument(
        "--into", type=Path, default=Path("data"), metavar="DIR", help="where to (default: %(default)s)"
    )
    options = parser.parse_args(argv)
    if options.name is None:
        for name, dataset in DATASETS.items():
            print(f"{name:<10} {dataset.about}")
        return 0
    try:
        # Standard output holds the result alone.
        folder = fetch(DATASETS[options.name], options.into, partial(print, file=sys.stderr)).as_posix()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT
    print(f"python -m frcnn_lite train --data voc:{folder} --minutes 10 --out runs/{options.name}")
    return 0
