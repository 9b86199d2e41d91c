"""Two trainings that notebook 20 looks at, filmed: their losses, and at some moments what the detector finds.

    cd notebooks && python -m course training_film     # writes checkpoints/training_film.json anew

It takes five minutes on two idle cores. In run A everything is right. In run B the optimizer was not given the
parameters of the RPN.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from course.kit.files import CHECKPOINTS
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


class Trained(NamedTuple):
    """A detector, and what a step of its training reads."""

    model: FasterRCNN
    optimizer: torch.optim.Optimizer
    schedule: torch.optim.lr_scheduler.LRScheduler
    seeds: torch.Generator


def read(file: Path = FILE) -> dict[str, Run]:
    """The stored runs by name."""
    runs = json.loads(file.read_text(encoding="utf-8"))["runs"]
    return {name: Run(run["losses"], [restored(*moment) for moment in run["moments"]]) for name, run in runs.items()}


def restored(step: int, ap: float, ap50: float, found: Sequence[Sequence[list[Any]]]) -> Moment:
    """A moment from what a file holds of it."""
    return Moment(
        step, ap, ap50, [(torch.tensor(b).view(-1, 4), torch.tensor(s), torch.tensor(n)) for b, s, n in found]
    )


def begin(owns: Callable[[str], bool] = lambda name: True) -> Trained:
    """A new detector on the CPU, and what trains those of its parameters whose names `owns` accepts."""
    torch.manual_seed(0)
    model = FasterRCNN(FasterRCNNConfig())
    some = [weight for name, weight in model.named_parameters() if owns(name)]
    optimizer = torch.optim.AdamW(some, lr=3e-3, betas=(0.9, 0.99))
    return Trained(
        model, optimizer, schedules.cosine(optimizer, 2000, warmup_steps=50), torch.Generator().manual_seed(0)
    )


def train(trained: Trained, steps: range) -> list[dict[str, float]]:
    """The losses of each of these steps, by name."""
    model, optimizer, schedule, seeds = trained
    scenes, history = data.DigitScenes("train", 20_000), []
    for step in steps:
        batch = data.collate([scenes[8 * step + k] for k in range(8)])
        parts = model(batch.images, batch.boxes, batch.labels, torch.randint(2**31, (8,), generator=seeds))
        losses = parallel.reduce_loss(parts.sums, parts.counts)
        optimizer.zero_grad()
        torch.stack(list(losses.values())).sum().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        history.append({name: loss.item() for name, loss in losses.items()})  # noqa: FL009 on the CPU
    return history


def film(name: str, moments: Sequence[int], judged: int = JUDGED) -> dict[str, Any]:
    """One run, as plain data: stopped at each of `moments`, judged, and gone on with. It runs on the CPU."""
    trained = begin(lambda part: name != "B" or not part.startswith("rpn."))
    test = data.DigitScenes("test", judged)
    history: list[dict[str, float]] = []
    kept = []
    for step in moments:
        history += train(trained, range(len(history), step))
        pictures = engine.judge(trained.model, test)
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
