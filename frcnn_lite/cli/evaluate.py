"""Print one JSON object with AP, AP50, AP75 and AP50 per class of a run on its test pictures.

  python -m frcnn_lite evaluate --run runs/first
  torchrun --standalone --nproc-per-node 2 -m -- frcnn_lite evaluate --run runs/first

Processes started by torchrun share the pictures out; every picture counts once. The `--` keeps torchrun, which takes
abbreviations, from reading `--run` as its own `--run-path` (pytorch issue 120601, 2024).
"""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run", type=Path, required=True, metavar="DIR", help="run directory")
    parser.add_argument(
        "--data", metavar="DATA", help="judge on voc:DIR@SPLIT or coco:FILE instead of the run's own data"
    )
    parser.add_argument("--best", action="store_true", help="the weights of best.pt instead of the last ones")
    parser.add_argument("--images", type=int, help="number of test pictures (default: the run's)")


def run(options: argparse.Namespace) -> int:
    """Evaluate a run on pictures that it was not trained on."""
    from frcnn_lite import engine
    from frcnn_lite.parallel import is_main_rank, process_group

    stored = engine.load_run(options.run, best=options.best)
    config = replace(stored.config, test_data=options.data) if options.data else stored.config
    pictures = engine.held_out_pictures(config, options.images or (sys.maxsize if options.data else None))
    with process_group() as device:
        result = engine.evaluate(stored.model.to(device), pictures, batch_size=stored.config.batch_size)
        if is_main_rank():
            print(json.dumps({**result.to_dict(), "run": options.run.as_posix(), "step": stored.step}))
    return 0
