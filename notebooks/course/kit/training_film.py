"""Two trainings that notebook 20 looks at, filmed: their losses, and at some moments what the detector finds.

    cd notebooks && python -m course training_film     # writes checkpoints/training_film.json anew

It takes five minutes on two idle cores. The program executes the two cells of the notebook that define `begin` and
`train`, so the reader's own first steps are those of the film. Run A is what these cells say. In run B the optimizer
was not given the parameters of the RPN.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import nbformat
import torch
from torch import Tensor, nn
from tqdm.auto import tqdm

from course.kit.files import CHECKPOINTS, NOTEBOOKS
from frcnn_lite import data, engine, parallel
from frcnn_lite.detection import FasterRCNN, FasterRCNNConfig
from frcnn_lite.recipes import schedules
from frcnn_lite.whole_file import whole_file

FILE = CHECKPOINTS / "training_film.json"
MOMENTS = {"B": (0, 100), "A": (0, 50, 100, 200, 400, 800, 1200, 1600, 2000)}
JUDGED, SHOWN = 100, 4  # held-out scenes that are judged, and those whose detections are kept
LEAST = 0.1  # score of a detection that is kept


class Moment(NamedTuple):
    """The detector after so many steps: its numbers on the held-out scenes, and what it finds in the first of them."""

    step: int
    AP: float
    AP50: float
    found: list[tuple[Tensor, Tensor, Tensor]]
    """for each scene boxes (n, 4), scores (n,) and labels (n,)"""


class Run(NamedTuple):
    """losses: name -> one number for each step; moments: in order."""

    losses: dict[str, list[float]]
    moments: list[Moment]

    @property
    def total(self) -> list[float]:
        """The sum of the losses of each step."""
        return [sum(step) for step in zip(*self.losses.values(), strict=True)]

    def at(self, step: int) -> Moment:
        return next(moment for moment in self.moments if moment.step == step)


def read(file: Path = FILE) -> dict[str, Run]:
    """The stored runs by name."""
    runs = json.loads(file.read_text(encoding="utf-8"))["runs"]
    return {name: Run(run["losses"], [restored(*moment) for moment in run["moments"]]) for name, run in runs.items()}


def restored(step: int, ap: float, ap50: float, found: Sequence[Sequence[list[Any]]]) -> Moment:
    """A moment from what a file holds of it."""
    return Moment(
        step, ap, ap50, [(torch.tensor(b).view(-1, 4), torch.tensor(s), torch.tensor(n)) for b, s, n in found]
    )


def cells() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """`begin` and `train` as the cells of the notebook define them."""
    (path,) = NOTEBOOKS.glob("20_*.ipynb")
    sources = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    names: dict[str, Any] = {
        **{module.__name__.split(".")[-1]: module for module in (torch, nn, data, parallel, schedules)},
        **{kind.__name__: kind for kind in (FasterRCNN, FasterRCNNConfig)},
        "is_live": lambda: False,
        "scenes": data.DigitScenes("train", 20_000),
        "tqdm": tqdm,
    }
    for start in ("def begin(", "def train("):
        (source,) = (source for source in sources if source.startswith(start))
        exec(compile(source, path.name, "exec"), names)
    return names["begin"], names["train"]


def film(name: str, moments: Sequence[int], judged: int = JUDGED) -> dict[str, Any]:
    """One run, as plain data: stopped at each of `moments`, judged, and gone on with. It runs on the CPU."""
    begin, train = cells()
    model, optimizer, schedule, seeds = begin("cpu")
    if name == "B":
        some = [weight for part, weight in model.named_parameters() if not part.startswith("rpn.")]
        optimizer = torch.optim.AdamW(some, lr=optimizer.defaults["lr"], betas=optimizer.defaults["betas"])
        schedule = schedules.cosine(optimizer, 2000, warmup_steps=50)
    test = data.DigitScenes("test", judged)
    history: list[dict[str, float]] = []
    kept = []
    for step in moments:
        history += train(model, optimizer, schedule, seeds, range(len(history), step))
        pictures = engine.judge(cast(FasterRCNN, model), test)
        score = engine.average_precision(pictures, test.class_names)
        kept.append([step, round(score.AP, 4), round(score.AP50, 4), [to_store(one) for one in pictures[:SHOWN]]])
        print(f"run {name}, step {step}: AP {score.AP:.3f}, AP50 {score.AP50:.3f}", flush=True)
    losses = {part: [round(step[part], 4) for step in history] for part in (history[0] if history else ())}
    return {"losses": losses, "moments": kept}


def to_store(picture: engine.Judged) -> list[list[Any]]:
    """What was found in a picture, as plain numbers with few digits: boxes, scores, labels."""
    keep = picture.found_scores >= LEAST
    boxes = [[round(x, 1) for x in box] for box in picture.found_boxes[keep].tolist()]
    scores = [round(score, 2) for score in picture.found_scores[keep].tolist()]
    return [boxes, scores, picture.found_labels[keep].tolist()]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m course training_film", description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=FILE, help="where to write it; a file that is there is replaced")
    out = parser.parse_args(arguments).out
    runs = {name: film(name, moments) for name, moments in MOMENTS.items()}
    with whole_file(out, replace=True) as partial:
        partial.write_text(json.dumps({"command": parser.prog, "runs": runs}) + "\n", encoding="utf-8")
