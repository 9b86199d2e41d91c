"""Numbers and statements in the prose of notebook 20 that no output shows, computed and run again."""

import pytest
import torch
import torch.nn.functional as F
from told import output, says

from course.kit import training_film
from course.kit.files import CHECKPOINTS
from frcnn_lite import data, engine
from frcnn_lite.detection.config import FasterRCNNConfig
from frcnn_lite.detection.losses import box_sum


def test_says_how_many_anchors_and_regions_are_drawn():
    config = FasterRCNNConfig()
    anchors = (128 // 2 ** len(config.widths)) ** 2 * len(config.anchor_sizes) * len(config.anchor_ratios)
    assert says("20", f"{config.rpn_samples} of its {anchors} anchors")
    assert says("20", f"{config.rpn_samples} anchors and {config.roi_samples} regions are drawn in a picture")


def test_counts_of_the_first_pictures_are_constants_but_for_one():
    scenes, detector = data.DigitScenes("train", 48), engine.load_weights(CHECKPOINTS / "digits.pt")
    batch = data.collate([scenes[k] for k in range(48)])
    with torch.no_grad():
        counts = detector(batch.images, batch.boxes, batch.labels, torch.arange(48)).counts
    assert {*counts["rpn_box"].tolist()} == {*counts["rpn_objectness"].tolist()} == {64.0}
    assert sorted(counts["head_class"].tolist()) == [27.0] + [32.0] * 47 == sorted(counts["head_box"].tolist())
    assert says("20", "one picture in the first 48 has 27 regions")


def test_says_what_an_object_weighs_on_eight_ranks():
    scenes = data.DigitScenes("train", 400)
    counts = torch.tensor([len(scenes[k].boxes) for k in range(400)]).float().view(50, 8)
    weights = counts.mean(dim=1, keepdim=True) / counts
    assert says("20", "In fifty such batches")
    assert says("20", f"weighs between {weights.min():.2f} and {weights.max():.2f} times its share")


def test_a_mean_over_no_rows_is_nan_and_its_gradient_is_not():
    deltas = torch.ones(3, 4, requires_grad=True)
    on = torch.zeros(3, dtype=torch.bool)
    of_rows, of_a_mask = deltas[on].abs().mean(), (deltas.abs().mean(dim=1) * on).sum() / on.sum()
    assert of_rows.isnan() and torch.autograd.grad(of_rows, deltas)[0].eq(0).all()
    assert of_a_mask.isnan() and torch.autograd.grad(of_a_mask, deltas)[0].isnan().all()
    of_ours = box_sum(deltas[None], torch.zeros(1, 3, 4), torch.zeros(1, 3), 1.0)
    assert of_ours.item() == 0 and torch.autograd.grad(of_ours, deltas)[0].eq(0).all()
    assert F.smooth_l1_loss(deltas[on], deltas[on].detach()).isnan()  # the same in torch's own loss


def test_quotes_the_library():
    text = (CHECKPOINTS.parents[1] / "frcnn_lite/detection/torchvision_backbone.py").read_text(encoding="utf-8")
    quoted = "BatchNorm that learns is not among the choices"
    assert quoted in " ".join(text.split()) and says("20", quoted)


def test_three_ranks_train_three_detectors_and_then_one():
    lines = [line for line in output("20", "def by_own_objects").splitlines() if line.startswith("ranks:")]
    again = [line for line in output("20", "alike = compare").splitlines() if line.startswith("ranks:")]
    assert len({line.split("step 5:")[1] for line in lines}) == 3 == len(lines)
    assert [line.split("step 5:")[1] for line in again] == [lines[0].split("step 5:")[1]] * 3


def test_stored_runs_are_what_the_program_computes():
    """The first steps of both, anew; what is stored was rounded, and a different processor rounds differently."""
    stored = training_film.read()
    for name in ("A", "B"):
        fresh = training_film.film(name, [0, 3], judged=1)
        for part, values in fresh["losses"].items():
            assert values == pytest.approx(stored[name].losses[part][:3], rel=0.01, abs=0.002)
        assert [moment.step for moment in stored[name].moments] == list(training_film.MOMENTS[name])
        assert len(stored[name].total) == training_film.MOMENTS[name][-1]


def test_the_losses_of_the_head_rise_and_those_of_the_rpn_do_not():
    change = {}
    for name, values in training_film.read()["A"].losses.items():
        means = [sum(values[k : k + 10]) / 10 for k in range(60)]
        change[name] = means[40] / means[10]  # the steps up to 50, and up to 20
    assert {name for name, factor in change.items() if factor > 1} == {"head_class", "head_box"}
    assert says("20", "the two losses of the head rise from step 20 to step 50")
