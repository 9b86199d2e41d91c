"""Find objects in images: a picture with boxes for each, or one JSON file of all, with boxes in each image's pixels.

python -m frcnn_lite predict --run runs/first photo.jpg more/*.png --out found
python -m frcnn_lite predict --run runs/first --best photo.jpg more/*.png --json found.json

An image that cannot be read is named, and the others still done. `--json -` prints.
"""

import argparse
import json
from pathlib import Path

from frcnn_lite.whole_file import whole_file

from .console import say
from .devices import fast_device


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run", type=Path, required=True, metavar="DIR", help="run directory")
    parser.add_argument("images", nargs="+", metavar="IMAGE", help="image files")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the pictures go (default: none are drawn)")
    parser.add_argument(
        "--json", metavar="FILE", help="one JSON file of what is found in all images, - to print it (default: none)"
    )
    parser.add_argument("--best", action="store_true", help="the weights of best.pt instead of the last ones")
    parser.add_argument("--min-score", type=float, default=0.5, help="least score to report (default: %(default)s)")


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
