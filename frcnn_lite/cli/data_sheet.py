"""Draw a sheet of digit scenes with a box around every digit, as SVG.

python -m frcnn_lite data sheet --rows 2 --columns 3 --out scenes.svg
"""

import argparse
from pathlib import Path

from .figure_file import save_svg


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="SVG file to write")
    parser.add_argument(
        "--split", choices=("train", "test"), default="train", help="which pictures (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the pictures (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=4, help="rows of the sheet (default: %(default)s)")
    parser.add_argument("--columns", type=int, default=6, help="pictures in a row (default: %(default)s)")


def run(options: argparse.Namespace) -> int:
    """Draw the sheet into a file that does not exist yet."""
    from frcnn_lite.data import DigitScenes, scene_sheet

    if options.out.exists():
        raise FileExistsError(f"{options.out} exists already; choose another name")
    dataset = DigitScenes(options.split, options.rows * options.columns, options.seed)
    scenes = [dataset[index] for index in range(len(dataset))]
    figure = scene_sheet(scenes, dataset.class_names, options.columns)
    save_svg(figure, options.out, "Digit scenes", f"{len(scenes)} pictures with a box around every digit")
    return 0
