"""Numbers and statements in the prose of notebook 20 that no output shows, computed and run again."""

import re

import pytest
import torch
from told import output, says

from course.kit import training_film
from frcnn_lite import data, parallel
from frcnn_lite.detection import FasterRCNN, FasterRCNNConfig


def test_describes_its_batch():
    scenes = data.DigitScenes("train", 20_000)
    counts = [len(scenes[k].boxes) for k in range(8)]
    words = ("zero", "one", "two", "three", "four", "five", "six")
    assert says("20", f"between {words[min(counts)]} and {words[max(counts)]} boxes a picture")
    assert f"boxes in each picture: {counts}" in output("20", "default_collate(")


def test_says_what_a_mean_of_means_would_change():
    """On equal shares next to nothing, on 5 and 4 pictures some per cent; a great deal if objects were counted."""
    torch.manual_seed(0)  # the detector is not trained, so its losses depend on the weights that are drawn
    scenes, detector = data.DigitScenes("train", 400), FasterRCNN(FasterRCNNConfig())

    def off(*shares):
        batch = data.collate([scenes[k] for k in range(sum(shares))])
        with torch.no_grad():
            parts = detector(batch.images, batch.boxes, batch.labels, torch.arange(sum(shares)))
        of_shares = zip(*({k: x.split(shares) for k, x in part.items()}.values() for part in parts), strict=True)
        means = [sum(a.sum() / b.sum() for a, b in zip(s, c, strict=True)) / len(shares) for s, c in of_shares]
        whole = parallel.reduce_loss(*parts).values()
        return max(float((mean / right - 1).abs()) for mean, right in zip(means, whole, strict=True))

    assert off(4, 4) < 1e-5 and 0.01 < off(5, 4) < 0.1
    counts = torch.tensor([len(scenes[k].boxes) for k in range(400)]).float().view(50, 8)
    weights = counts.mean(dim=1, keepdim=True) / counts
    assert says("20", f"weigh between {weights.min():.2f} and {weights.max():.2f} times its share")


def test_describes_its_detector():
    config = FasterRCNNConfig()
    cells = (128 // 2 ** len(config.widths)) ** 2
    anchors = cells * len(config.anchor_sizes) * len(config.anchor_ratios)
    assert says("20", f"Of the {anchors} anchors of a picture a step trains on {config.rpn_samples}")


def test_stored_runs_are_what_its_cells_compute():
    """The first steps of both, anew; what is stored was rounded, and a different processor rounds differently."""
    stored = training_film.read()
    for name in ("A", "B"):
        fresh = training_film.film(name, [0, 3], judged=1)
        for part, values in fresh["losses"].items():
            assert values == pytest.approx(stored[name].losses[part][:3], rel=0.01, abs=0.002)
        assert [moment.step for moment in stored[name].moments] == list(training_film.MOMENTS[name])
        assert len(stored[name].total) == training_film.MOMENTS[name][-1]


def test_says_what_the_last_steps_of_run_a_buy():
    run = training_film.read()["A"]
    growth = {name: getattr(run.at(2000), name) - getattr(run.at(800), name) for name in ("AP", "AP50")}
    assert says("20", f"AP50 grows by {growth['AP50']:.2f}, and AP by twice as much")
    assert 1.8 < growth["AP"] / growth["AP50"] < 2.4
    assert says("20", f"At step 400 AP50 has reached {run.at(400).AP50:.2f}")
    assert says("20", "at step 100 the figure shows nothing")
    assert 0.12 < max(float(scores.max()) for _, scores, _ in run.at(100).found[:2]) < 0.3


def test_says_which_loss_shows_what_a_checkpoint_lacks():
    lines = output("20", "for forget in").splitlines()
    different = {line.split()[1].rstrip(":"): [int(k) for k in re.findall(r"\d", line.split("[")[1])] for line in lines}
    assert different["nothing"] == []
    for part in ("model", "seeds", "step"):
        assert different[part][0] == 0
    assert different["optimizer"] == [1, 2, 3, 4] and different["schedule"] == [2, 3, 4]
    assert says("20", "so the first loss is different already") and says("20", "The schedule shows last.")
