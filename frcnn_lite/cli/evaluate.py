"""Say how good the detector of a run is on its test pictures, as JSON: AP, AP50, AP75, and AP50 of each class.

The JSON holds all numbers of COCO's summary, too: AP and AR of small, medium and large objects (null where there is
none), by their pixels in the picture's file, and AR1 and AR10, of the best 1 and 10 detections of a picture and class.

  python -m frcnn_lite evaluate --run runs/first
  python -m frcnn_lite evaluate --run runs/first --report runs/first/report
  torchrun --standalone --nproc-per-node 2 -m -- frcnn_lite evaluate --run runs/first

Processes that torchrun starts share the pictures, and every picture counts once. The `--` is needed because torchrun
takes abbreviations, and would read `--run` as its own `--run-path` (pytorch issue 120601, 2024).

`--report DIR` draws precision over recall and a confusion matrix, and writes the matrix as JSON, too; it replaces no
file. The matrix counts detections with a score of at least 0.5. In the order of their scores, each is matched to an
object of any class that it overlaps with an IoU of at least 0.5.
"""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frcnn_lite.whole_file import whole_file

from .console import say
from .devices import fast_device
from .options import height_by_width

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from frcnn_lite.engine import Judged

REPORT = ("precision_recall.svg", "confusion_matrix.svg", "confusion_matrix.json")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--run", type=Path, required=True, metavar="DIR", help="folder of the run, or a .pt file of export"
    )
    parser.add_argument(
        "--data",
        metavar="DATA",
        help="other test pictures: voc:DIR@SPLIT, yolo:DIR@SPLIT or coco:FILE (default: those of the run)",
    )
    parser.add_argument(
        "--best", action="store_true", help="use the weights that were judged best (best.pt), not the last ones"
    )
    parser.add_argument(
        "--images", type=int, metavar="N", help="number of test pictures (default: as many as in training)"
    )
    parser.add_argument(
        "--image-size",
        type=height_by_width,
        metavar="HxW",
        help="height and width of the canvas on which pictures are shown (default: that of the training)",
    )
    parser.add_argument("--report", type=Path, metavar="DIR", help="folder for figures of the result (default: none)")


def run(options: argparse.Namespace) -> int:
    """Evaluate a run on pictures that it was not trained on."""
    from frcnn_lite import engine
    from frcnn_lite.parallel import is_main_rank, process_group

    for report in [options.report / name for name in REPORT] if options.report else []:
        if report.exists():
            raise FileExistsError(f"{report} exists already; choose a different folder")
    stored = engine.load_run(options.run, best=options.best)
    config = replace(stored.config, test_data=options.data) if options.data else stored.config
    if options.image_size:
        config = replace(config, image_size=options.image_size)
    pictures = engine.Pictures().held_out(config, options.images or (sys.maxsize if options.data else None))
    with process_group(fast_device()) as device:
        model, batch_size = stored.model.to(device), stored.config.batch_size
        judged = engine.judge(model, pictures, batch_size=batch_size, progress=sys.stderr.isatty())
        if is_main_rank():
            result = engine.average_precision(judged, pictures.class_names)
            of_run = {"run": options.run.as_posix(), "step": stored.step}
            print(json.dumps({**result.to_dict(), **of_run}))
            if options.report:
                _write_report(judged, pictures.class_names, options.report, of_run)
    return 0


def _write_report(judged: "list[Judged]", class_names: tuple[str, ...], folder: Path, of_run: dict[str, Any]) -> None:
    from frcnn_lite import engine

    curves_file, figure_file, numbers_file = (folder / name for name in REPORT)
    curves = engine.precision_recall(engine.class_curves(judged, class_names))
    _save(curves, curves_file, "Precision over recall", f"Of every class, on {len(judged)} pictures")
    matrix = engine.confusion_matrix(judged, class_names)
    rule = f"Detections of a score of {matrix.score:g} or more, on {len(judged)} pictures"
    _save(engine.confusion_figure(matrix), figure_file, "Confusion matrix", rule)
    with whole_file(numbers_file) as unfinished:
        unfinished.write_text(json.dumps({**matrix.to_dict(), **of_run}) + "\n", encoding="utf-8")
    for name in REPORT:
        say(f"{folder / name} written")


def _save(figure: "Figure", file: Path, title: str, description: str) -> None:
    """As SVG that depends on the data alone, with its text as text."""
    import matplotlib

    about = {"Date": None, "Title": title, "Description": description}
    with whole_file(file) as unfinished, matplotlib.rc_context({"svg.hashsalt": "frcnn_lite", "svg.fonttype": "none"}):
        figure.savefig(unfinished, format="svg", metadata=about)
