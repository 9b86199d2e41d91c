"""Write a picture with boxes for every image; an image that cannot be read is named, and the others still done.

python -m frcnn_lite predict --run runs/first photo.jpg more/*.png --out found
"""

import argparse
from pathlib import Path

from .console import say
from .devices import fast_device


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run", type=Path, required=True, metavar="DIR", help="run directory")
    parser.add_argument("images", nargs="+", metavar="IMAGE", help="image files")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the pictures go")
    parser.add_argument("--min-score", type=float, default=0.5, help="least score to draw (default: %(default)s)")


def run(options: argparse.Namespace) -> int:
    """Draw what is found in each image; 1 when some image could not be read."""
    from frcnn_lite import engine
    from frcnn_lite.data import Letterbox

    stored = engine.load_run(options.run)
    model, config = stored.model.to(fast_device()), stored.config
    # Digits were trained on at one size and are found at any; pictures of a folder are shown as in training.
    letterbox = None if config.data == "digits" else Letterbox(*config.image_size)
    failed = 0
    for path in options.images:
        try:
            picture, prediction = engine.predict_file(
                model, path, options.out, config.class_names, min_score=options.min_score, letterbox=letterbox
            )
        except (FileNotFoundError, ValueError) as error:
            say(f"error: {error}")
            failed += 1
        else:
            say(f"{path}: {len(prediction.labels)} found, drawn in {picture}")
    return 1 if failed else 0
