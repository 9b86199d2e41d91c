"""A run that is trained, judged in other ways: larger canvases, more proposals, other thresholds, mirrored as well.

    python benchmarks/judge_otherwise.py runs/cells

Nothing is trained. Each row changes in one way how the same weights are used on the same unseen pictures, and the
processor time beside it says what the change costs. A larger canvas is filled from the picture itself, so it shows more
detail. The idea that a detector finds more in pictures that are a little larger than those it was trained on is that of
H. Touvron et al., "Fixing the train-test resolution discrepancy", 2019. Digit scenes are drawn for one size, which is
why the rows of canvases are left out for them. Not part of `make bench`: it needs a run.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from frcnn_lite import engine
from frcnn_lite.data import DetectionDataset
from frcnn_lite.detection import FasterRCNN

LARGER = (1.0625, 1.125, 1.25)
THRESHOLDS: tuple[dict[str, float], ...] = (
    {"score_threshold": 0.01},
    {"proposal_nms_iou": 0.6},
    {"proposal_nms_iou": 0.8},
    {"detection_nms_iou": 0.3},
    {"detection_nms_iou": 0.5},
    {"voting_iou": 0.4},
    {"voting_iou": 0.6},
)


def ways(run: Path) -> Iterator[tuple[str, FasterRCNN, DetectionDataset]]:
    """A name, the detector as it is changed, and what it is judged on."""
    stored = engine.load_run(run)
    config, own = stored.config, stored.model.config
    pictures = engine.Pictures().held_out(config)

    def changed(**values: Any) -> FasterRCNN:
        stored.model.config = replace(own, **values)
        return stored.model

    twice = {"proposals": 2 * own.proposals, "pre_nms_proposals": 2 * own.pre_nms_proposals}
    yield "as it is", changed(), pictures
    for factor in LARGER if config.data != "digits" else ():
        height, width = (round(side * factor) for side in config.image_size)
        larger = engine.Pictures().held_out(replace(config, image_size=(height, width)))
        yield f"canvas of {width} x {height}", changed(), larger
        yield "that and twice the proposals", changed(**twice), larger
    yield "twice the proposals", changed(**twice), pictures
    yield "mirrored too" if not own.mirrored else "not mirrored", changed(mirrored=not own.mirrored), pictures
    for values in THRESHOLDS:
        ((name, value),) = values.items()
        yield f"`{name}` {value:g}", changed(**values), pictures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="RUN", help="run directory")
    print("| | AP50 | AP | AP75 | seconds |\n|---|---|---|---|---|")
    for name, detector, pictures in ways(parser.parse_args().run):
        engine.evaluate(detector, pictures)  # once before, which reads the files: that is no part of what a way costs
        start = time.process_time()
        found = engine.evaluate(detector, pictures)
        seconds = time.process_time() - start
        print(f"| {name} | {found.AP50:.3f} | {found.AP:.3f} | {found.AP75:.3f} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
