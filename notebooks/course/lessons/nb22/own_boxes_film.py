"""Trainings on the repaired folder of notebook 22, filmed: what the detector finds in held-out pictures, and when.

    cd notebooks && python -m course own_boxes_film     # writes checkpoints/own_boxes_film.json anew

It takes four minutes on two idle cores. The program executes the two cells of the notebook that write, damage and
repair the folder, so the detector learns from the files that the reader has repaired.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import torch
from torch import Tensor

from course.kit.files import CHECKPOINTS, NOTEBOOKS
from course.kit.training_film import Moment, restored, to_store
from course.lessons.nb22 import voc_folder
from frcnn_lite import data, engine
from frcnn_lite.engine.runs import Record
from frcnn_lite.whole_file import whole_file

FILE = CHECKPOINTS / "own_boxes_film.json"
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
PLANS: dict[str, dict[str, Any]] = {
    "scratch": {"flip": 0.0},
    "weights": {
        "flip": 0.0,
        "weights": str(CHECKPOINTS / "digits.pt"),
        "lr": 3e-3,
        "backbone_lr": 0.1,
        "warmup_steps": 10,
        "batch_size": 4,
    },
}
MOMENTS = {"scratch": (60, 300, 1200), "weights": (60,)}
SHOWN = 3  # held-out pictures whose detections are kept


def read(file: Path = FILE) -> dict[str, list[Moment]]:
    """The stored moments of each run, in order; labels are digits."""
    runs = json.loads(file.read_text(encoding="utf-8"))["runs"]
    return {name: [restored(*moment) for moment in moments] for name, moments in runs.items()}


def examples(config: engine.TrainConfig) -> tuple[list[Tensor], list[tuple[Tensor, Tensor]]]:
    """The held-out pictures of which detections are stored, (3, H, W) uint8, and their boxes and digits."""
    scenes = engine.Pictures().held_out(config, SHOWN)
    digits = torch.tensor(_digits(config.class_names))
    shown = [scenes[k] for k in range(SHOWN)]
    return [scene.image for scene in shown], [(scene.boxes, digits[scene.labels]) for scene in shown]


def _digits(class_names: Sequence[str]) -> list[int]:
    """The digit of each label."""
    return [WORDS.index(name) if name in WORDS else int(name) for name in class_names]


def repaired_folder(folder: Path) -> Path:
    """Write the folder of the notebook, damage and repair it, as the notebook's cells do."""
    (path,) = NOTEBOOKS.glob("22_*.ipynb")
    sources = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    helpers = (voc_folder.write_voc, voc_folder.plant_faults, voc_folder.edit, voc_folder.add, voc_folder.remove)
    names: dict[str, Any] = {"data": data, "folder": folder, "print": lambda *words: None}
    names |= {function.__name__: function for function in (*helpers, voc_folder.rescale)}
    for start in ("scenes = ", "def repair("):
        (source,) = (source for source in sources if source.startswith(start))
        exec(compile(source, path.name, "exec"), names)
    names["repair"](folder)
    return folder


def film(folder: Path, plan: dict[str, Any], moments: Sequence[int]) -> list[list[Any]]:
    """One run on the CPU, as plain data: stopped at each of `moments`, judged, and gone on with."""
    pictures = engine.Pictures()
    config = engine.resolve(pictures, data=f"voc:{folder}", steps=moments[-1], **plan)
    held_out, kept = pictures.held_out(config), []
    digits = _digits(config.class_names)
    with tempfile.TemporaryDirectory() as run:
        for moment in moments:
            engine.train(replace(config, test_images=0), Path(run) / "run", resume="auto", on_step=_StopAt(moment))
            judged = engine.judge(engine.load_run(Path(run) / "run").model, held_out)
            score = engine.average_precision(judged, config.class_names)
            found = [to_store(one) for one in judged[:SHOWN]]
            found = [[boxes, scores, [digits[label] for label in labels]] for boxes, scores, labels in found]
            kept.append([moment, round(score.AP, 4), round(score.AP50, 4), found])
            print(f"step {moment}: AP {score.AP:.3f}, AP50 {score.AP50:.3f}", flush=True)
    return kept


class _StopAt:
    """Ends a training after so many steps of the whole run, as Ctrl-C would."""

    def __init__(self, step: int) -> None:
        self.step = step

    def __call__(self, record: Record) -> None:
        if record["step"] + 1 == self.step:
            raise KeyboardInterrupt


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m course own_boxes_film", description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=FILE, help="where to write it; a file that is there is replaced")
    out = parser.parse_args(arguments).out
    runs = {}
    with tempfile.TemporaryDirectory() as place:
        folder = repaired_folder(Path(place) / "digits")
        for name, plan in PLANS.items():
            if name == "weights":  # whose classes are not those of the folder
                voc_folder.rename(folder, WORDS)
            runs[name] = film(folder, plan, MOMENTS[name])
    with whole_file(out, replace=True) as partial:
        partial.write_text(json.dumps({"command": parser.prog, "runs": runs}) + "\n", encoding="utf-8")
