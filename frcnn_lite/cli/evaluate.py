"""Print one JSON object with AP, AP50, AP75 and AP50 per class of a run on its test pictures.

  python -m frcnn_lite evaluate --run runs/first
  python -m frcnn_lite evaluate --run runs/first --report runs/first/report
  torchrun --standalone --nproc-per-node 2 -m -- frcnn_lite evaluate --run runs/first

Processes started by torchrun share the pictures out; every picture counts once. The `--` keeps torchrun, which takes
abbreviations, from reading `--run` as its own `--run-path` (pytorch issue 120601, 2024). `--report DIR` draws precision
over recall into a file that is not there yet.
"""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from frcnn_lite.whole_file import whole_file

from .console import say

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPORT = "precision_recall.svg"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run", type=Path, required=True, metavar="DIR", help="run directory")
    parser.add_argument(
        "--data", metavar="DATA", help="voc:DIR@SPLIT or coco:FILE to judge on (default: the run's own test pictures)"
    )
    parser.add_argument("--best", action="store_true", help="the weights of best.pt instead of the last ones")
    parser.add_argument("--images", type=int, help="number of test pictures (default: the run's)")
    parser.add_argument("--report", type=Path, metavar="DIR", help=f"write {REPORT} there (default: none)")


def run(options: argparse.Namespace) -> int:
    """Evaluate a run on pictures that it was not trained on."""
    from frcnn_lite import engine
    from frcnn_lite.parallel import is_main_rank, process_group

    report = options.report / REPORT if options.report else None
    if report and report.exists():
        raise FileExistsError(f"{report} exists already; choose a different folder")
    stored = engine.load_run(options.run, best=options.best)
    config = replace(stored.config, test_data=options.data) if options.data else stored.config
    pictures = engine.Pictures().held_out(config, options.images or (sys.maxsize if options.data else None))
    with process_group() as device:
        model, batch_size = stored.model.to(device), stored.config.batch_size
        judged = engine.judge(model, pictures, batch_size=batch_size, progress=sys.stderr.isatty())
        if is_main_rank():
            result = engine.average_precision(judged, pictures.class_names)
            print(json.dumps({**result.to_dict(), "run": options.run.as_posix(), "step": stored.step}))
            if report:
                curves = engine.precision_recall(engine.class_curves(judged, pictures.class_names))
                _save(curves, report, f"Of every class, on {len(judged)} pictures")
                say(f"{report} written")
    return 0


def _save(figure: "Figure", file: Path, description: str) -> None:
    """As SVG that depends on the data alone, with its text as text."""
    import matplotlib

    about = {"Date": None, "Title": "Precision over recall", "Description": description}
    with whole_file(file) as unfinished, matplotlib.rc_context({"svg.hashsalt": "frcnn_lite", "svg.fonttype": "none"}):
        figure.savefig(unfinished, format="svg", metadata=about)
