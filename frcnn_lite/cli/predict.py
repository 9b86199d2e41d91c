"""Find objects in images, and draw them into copies of the images or write them to one JSON file.

  python -m frcnn_lite predict --run runs/first photo.jpg more/*.png --out found
  python -m frcnn_lite predict --run runs/first --best photo.jpg more/*.png --json found.json

Boxes are in pixels of their image. An image that cannot be read is named, and the command goes on with the others.
"""

import argparse
import json
from pathlib import Path

from frcnn_lite.whole_file import whole_file

from .console import say
from .devices import fast_device


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--run", type=Path, required=True, metavar="DIR", help="folder of the run, or a .pt file of export"
    )
    parser.add_argument("images", nargs="+", metavar="IMAGE", help="image files")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder for copies with boxes drawn in (default: none are drawn)"
    )
    parser.add_argument(
        "--json", metavar="FILE", help="file for what is found in all images; - prints it (default: none)"
    )
    parser.add_argument(
        "--best", action="store_true", help="use the weights that were judged best (best.pt), not the last ones"
    )
    least = "leave out objects with a lower score (default: %(default)s)"
    parser.add_argument("--min-score", type=float, default=0.5, metavar="X", help=least)


def run(options: argparse.Namespace) -> int:
    """Say, draw or write what is found in each image; 1 when some image could not be read."""
    from frcnn_lite import engine

    if options.out is None and options.json is None:
        raise ValueError("predict needs --out DIR for pictures, --json FILE for numbers, or both")
    if options.json not in (None, "-") and Path(options.json).exists():
        raise FileExistsError(f"{options.json} exists already; choose another name")
    stored = engine.load_run(options.run, best=options.best)
    stored.model.to(fast_device())
    failed, found = 0, []
    for path in options.images:
        try:
            prediction, picture = engine.predict_file(stored, path, options.out, min_score=options.min_score)
        except (FileNotFoundError, ValueError) as error:
            say(f"error: {error}")
            found.append({"image": path, "error": str(error)})
            failed += 1
        else:
            found.append({"image": path, "objects": prediction.objects(stored.config.class_names)})
            say(f"{path}: {len(prediction.labels)} found" + (f", drawn in {picture}" if picture else ""))
    if options.json is not None:
        _write(
            json.dumps({"run": options.run.as_posix(), "step": stored.step, "images": found}, indent=2), options.json
        )
    return 1 if failed else 0


def _write(text: str, file: str) -> None:
    if file == "-":
        print(text)
        return
    with whole_file(Path(file)) as partial:
        partial.write_text(text + "\n", encoding="utf-8")
