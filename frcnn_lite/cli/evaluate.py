"""Print one JSON object with AP, AP50, AP75 and AP50 per class of a run on its test pictures.

  python -m frcnn_lite evaluate --run runs/first
  python -m frcnn_lite evaluate --run runs/first --report runs/first/report
  torchrun --standalone --nproc-per-node 2 -m -- frcnn_lite evaluate --run runs/first

Processes started by torchrun share the pictures out; every picture counts once. The `--` keeps torchrun, which takes
abbreviations, from reading `--run` as its own `--run-path` (pytorch issue 120601, 2024). `--report DIR` draws precision
over recall and the worst errors into files that are not there yet.
"""

import argparse
import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from .console import say
from .figure_file import save_svg

if TYPE_CHECKING:
    from frcnn_lite.data import DetectionDataset
    from frcnn_lite.engine import Judged

REPORT = ("precision_recall.svg", "worst_errors.svg")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run", type=Path, required=True, metavar="DIR", help="run directory")
    parser.add_argument(
        "--data", metavar="DATA", help="voc:DIR@SPLIT or coco:FILE to judge on (default: the run's own test pictures)"
    )
    parser.add_argument("--best", action="store_true", help="the weights of best.pt instead of the last ones")
    parser.add_argument("--images", type=int, help="number of test pictures (default: the run's)")
    parser.add_argument(
        "--report", type=Path, metavar="DIR", help=f"write {' and '.join(REPORT)} there (default: none)"
    )


def run(options: argparse.Namespace) -> int:
    """Evaluate a run on pictures that it was not trained on."""
    from frcnn_lite import engine
    from frcnn_lite.parallel import is_main_rank, process_group

    files = [options.report / name for name in REPORT] if options.report else []
    for file in files:
        if file.exists():
            raise FileExistsError(f"{file} exists already; choose another folder")
    stored = engine.load_run(options.run, best=options.best)
    config = replace(stored.config, test_data=options.data) if options.data else stored.config
    pictures = engine.held_out_pictures(config, options.images or (sys.maxsize if options.data else None))
    with process_group() as device:
        model, batch_size = stored.model.to(device), stored.config.batch_size
        judged = engine.judge(model, pictures, batch_size=batch_size, progress=sys.stderr.isatty())
        if is_main_rank():
            result = engine.average_precision(judged, pictures.class_names)
            print(json.dumps({**result.to_dict(), "run": options.run.as_posix(), "step": stored.step}))
            if files:
                _draw(files, judged, pictures)
    return 0


def _draw(files: list[Path], judged: "list[Judged]", pictures: "DetectionDataset") -> None:
    from frcnn_lite import engine

    errors = engine.find_errors(judged)
    kinds = ", ".join(f"{n} {kind}" for kind, n in Counter(error.kind for error in errors).most_common())
    figures = {
        "Precision over recall": engine.precision_recall(engine.class_curves(judged, pictures.class_names)),
        f"Worst errors: {kinds or 'none'}": engine.worst_errors(errors, judged, pictures),
    }
    for file, (title, figure) in zip(files, figures.items(), strict=True):
        save_svg(figure, file, title, f"{title}, of {len(judged)} pictures")
        say(f"{file} written")
