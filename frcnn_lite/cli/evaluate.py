"""Print one JSON object with AP, AP50, AP75 and AP50 per class of a run on its test pictures.

python -m frcnn_lite evaluate --run runs/first
"""

import argparse
import json
from pathlib import Path

from .devices import fast_device


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run", type=Path, required=True, metavar="DIR", help="run directory")
    parser.add_argument("--images", type=int, help="number of test pictures (default: the run's)")


def run(options: argparse.Namespace) -> int:
    """Evaluate a run on pictures that it was not trained on."""
    from frcnn_lite import engine

    stored = engine.load_run(options.run)
    pictures = engine.held_out_pictures(stored.config, options.images)
    result = engine.evaluate(stored.model.to(fast_device()), pictures, batch_size=stored.config.batch_size)
    print(json.dumps({**result.to_dict(), "run": options.run.as_posix(), "step": stored.step}))
    return 0
