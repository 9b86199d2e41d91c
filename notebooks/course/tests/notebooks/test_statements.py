"""Numbers and verdicts that the prose of a notebook states, computed again; answers that a run has to tell apart."""

import math
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest
import torch
from PIL import Image

import vgpu
from course.kit import training_film
from course.kit.learn.by_key import find_question
from course.lessons.nb13.puzzles.check_encode import encode
from course.lessons.nb22 import own_boxes_film, voc_folder
from frcnn_lite import data, engine, ops, parallel
from frcnn_lite.detection import FasterRCNN, FasterRCNNConfig, suppress
from frcnn_lite.detection.anchors import cell_anchors, grid_anchors
from frcnn_lite.ops.matching import match

NOTEBOOKS = Path(__file__).resolve().parents[3]


@cache
def notebook(number):
    (path,) = NOTEBOOKS.glob(f"{number}_*.ipynb")
    return nbformat.read(path, as_version=4)


def prose(number):
    cells = (cell.source for cell in notebook(number).cells if cell.cell_type == "markdown")
    return " ".join(" ".join(cells).split())


def output(number, words):
    """What the one cell printed whose source has these words."""
    (cell,) = (c for c in notebook(number).cells if c.cell_type == "code" and words in c.source)
    return "".join(o.get("text", "") for o in cell.outputs)


# ---- 12: made twice, or copied?

CACHED = """
from course.kit import learn
from frcnn_lite.detection import anchors, rpn

made, kept = anchors.grid_anchors, []

def cached(cell, *grid):
    kept.append(made(cell, *grid)) if not kept else None
    return kept[0].to(cell.device)
"""
REVEALED = "learn.reveal = lambda key, outcome: print(key, '->', outcome) if key == '12.two' else None\n"


@pytest.mark.parametrize(
    ("before", "outcome"),
    [
        ("from course import learn\n", "on both, made twice"),
        (CACHED + "rpn.grid_anchors = cached\n", "on both, copied from cuda:0"),
    ],
    ids=["as the detector is", "anchors kept in a cache"],
)
def test_12_tells_anchors_that_are_made_from_anchors_that_are_copied(before, outcome):
    skipped = {"predict", "exercise", "solution", "widget"}
    cells = [c for c in notebook("12").cells if c.cell_type == "code"]
    sources = [c.source for c in cells if not skipped & set(c.metadata.get("tags", ()))]
    (last,) = (k for k, source in enumerate(sources) if '"12.two"' in source)
    program = before + REVEALED + "\n".join(sources[: last + 1])
    ran = subprocess.run([sys.executable, "-c", program], cwd=NOTEBOOKS, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr
    assert f"12.two -> {outcome}" in ran.stdout


def test_12_says_what_a_step_asks_of_the_gpu(monkeypatch):
    """The answers of NMS, and no copy to the CPU beside them."""
    asked, equal = [], torch.equal
    monkeypatch.setattr(torch, "equal", lambda *two: asked.append(two) or equal(*two))
    with vgpu.virtual_gpus(1):
        batch = data.collate([data.DigitScenes("train", 2)[k] for k in range(2)])
        detector = engine.load_weights(NOTEBOOKS / "checkpoints" / "digits.pt").to("cuda:0")
        given = [x.to("cuda:0") for x in (batch.images, batch.boxes, batch.labels, torch.arange(2))]
        with vgpu.trace() as trace:
            parallel.reduce_loss(*detector(*given))
        assert asked and not trace.copies()
    assert "Here only NMS asks for a number: after each of its rounds, whether anything has changed" in prose("12")


# ---- 13: how many anchors are positive, and what the + 1 costs


def test_13_says_how_far_an_edge_is_off_with_the_plus_one():
    """Its way, divided by the size of the anchor + 1; below 2/3 of a pixel where box and anchor overlap by 0.6."""
    draws = torch.Generator().manual_seed(0)
    for side in (8.0, 32.0, 128.0):
        anchors = torch.tensor([0.0, 0, side, side]).expand(100_000, 4)
        boxes = anchors + (torch.rand(100_000, 4, generator=draws) - torch.tensor([0.5, 0.5, 0.3, 0.3])) * side * 0.9
        back = ops.decode_boxes(encode(boxes, anchors, extra=1), anchors, torch.ones(4))
        torch.testing.assert_close(boxes - back, (boxes - anchors) / (side + 1), rtol=1e-4, atol=1e-3)
        fits = ops.box_iou(boxes[:, None], anchors[:, None])[:, 0, 0] >= 0.6
        assert 0.4 < (boxes - back)[fits].abs().max() < 0.667
    assert "Each edge is off by the way that it has to move, divided by the anchor's width + 1" in prose("13")
    assert "one that overlaps it by 0.6, the threshold above, makes one of less than 0.7 pixels" in prose("13")


def test_13_positive_anchors():
    anchors = grid_anchors(cell_anchors((18.0, 26.0, 36.0), (1.4,)), 16, 16, 8)
    boxes = data.DigitScenes("train", 100)[85].boxes[None]
    real = torch.ones(boxes.shape[:2], dtype=torch.bool)
    found = match(ops.box_iou(boxes, anchors), real, 0.6, 0.3, allow_low_quality=True)
    positive = int((found >= 0).sum())
    share = f"{positive / len(anchors):.1%}".replace("%", " %")
    assert f"Of {len(anchors)} anchors {positive} are positive: {share}" in prose("13")


# ---- 14: how rare the lost digit is, and what suppression waits for


def test_14_counts_the_waits_inside_suppression():
    """On a CUDA GPU the host asks after every round; the table of the notebook counts that as a wait."""
    table = output("14", "all in one batch").splitlines()[1:]
    rows = [list(map(int, line.split())) for line in table]
    assert [row[0] for row in rows] == [1, 4, 8] and rows[0][1] == rows[0][2]
    words = {5: "five", 6: "six", 7: "seven"}[rows[2][2]]
    assert f"{words} rounds settle all eight pictures" in prose("14")
    assert f"the host waits {rows[2][1]} times" in prose("14")


def one_round_beside_all(count, threshold):
    """Of 400 pictures: those in which one round keeps other boxes, and how many digits it leaves without any."""
    detector, scenes = engine.load_weights(NOTEBOOKS / "checkpoints" / "digits.pt"), data.DigitScenes("test", 400)
    differ, lost = [], 0
    for start in range(0, 400, 50):
        some = [scenes[k] for k in range(start, start + 50)]
        with torch.no_grad():
            rpn = detector.rpn(detector.backbone(data.collate(some).images).rpn)
        order = rpn.logits.argsort(dim=1, descending=True, stable=True)[:, :count]
        deltas = rpn.deltas.gather(1, order[:, :, None].expand(-1, -1, 4))
        boxes = ops.decode_boxes(deltas, rpn.anchors[order], detector.rpn.delta_weights)
        boxes = ops.clip_boxes(boxes, 128, 128).round()
        overlaps = ops.box_iou(boxes, boxes)
        once = ~((overlaps > threshold).triu(diagonal=1)).any(dim=1)
        kept = ops.nms_mask(overlaps, rpn.logits.gather(1, order), threshold)
        differ += (start + (once != kept).any(dim=1).nonzero()[:, 0]).tolist()
        for scene, own, first, all_of_them in zip(some, boxes, once, kept, strict=True):
            on = ops.box_iou(scene.boxes, own) > 0.5
            lost += int(((on & all_of_them).any(dim=1) & ~(on & first).any(dim=1)).sum())
    return differ, lost


def test_14_shows_the_only_picture_of_400_in_which_one_round_is_wrong():
    assert one_round_beside_all(12, 0.4) == ([332], 1)
    assert "Of the 400 pictures in this test set, with twelve boxes each, this is the only one" in prose("14")
    (cell,) = (c.source for c in notebook("14").cells if "def best_boxes" in c.source)
    assert "digit_scenes[332]" in cell


def test_14_says_how_little_one_round_shows_in_the_results(monkeypatch):
    differ, lost = one_round_beside_all(192, 0.7)
    assert (len(differ), lost) == (400, 0)
    assert "the 192 boxes and the threshold of 0.7 that the detector itself uses, they disagree in all 400" in prose(
        "14"
    )
    assert "no digit loses its last box, and average precision does not fall" in prose("14")
    detector, scenes = engine.load_weights(NOTEBOOKS / "checkpoints" / "digits.pt"), data.DigitScenes("test", 100)
    right = engine.average_precision(engine.judge(detector, scenes), scenes.class_names).AP

    def one_round(iou, scores, threshold, classes=None):
        above = scores.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
        suppresses = (iou > threshold) & (above[:, :, None] < above[:, None])
        return ~(suppresses if classes is None else suppresses & (classes[:, :, None] == classes[:, None])).any(dim=1)

    monkeypatch.setattr(suppress, "nms_mask", one_round)
    wrong = engine.average_precision(engine.judge(detector, scenes), scenes.class_names).AP
    assert wrong >= right


def test_14_says_how_many_boxes_ask_for_so_much_memory():
    assert "2.98 GiB` from `nms`. That is one bit for each pair of 160,000 boxes" in prose("14")
    assert f"{160_000**2 / 8 / 2**30:.2f}" == "2.98"


# ---- 12: who raised it


def test_12_says_which_errors_are_acted_out():
    for cell in notebook("17").cells:
        text = "".join(o.get("text", "") for o in cell.get("outputs", ()) if o.output_type == "stream")
        if "CUDA_ERROR" in text and "post" not in cell.metadata.get("tags", ()):
            assert "acted out by the stand-in for CuPy" in text


# ---- 20: the batch, the anchors, and the stored runs


def test_20_describes_its_batch():
    scenes = data.DigitScenes("train", 20_000)
    counts = [len(scenes[k].boxes) for k in range(8)]
    words = ("zero", "one", "two", "three", "four", "five", "six")
    assert f"between {words[min(counts)]} and {words[max(counts)]} boxes a picture" in prose("20")
    assert f"boxes in each picture: {counts}" in output("20", "default_collate(")


def test_20_says_what_a_mean_of_means_would_change():
    """On equal shares next to nothing, on 5 and 4 pictures some per cent; a great deal if objects were counted."""
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
    assert f"weigh between {weights.min():.2f} and {weights.max():.2f} times its share" in prose("20")


def test_20_describes_its_detector():
    config = FasterRCNNConfig()
    cells = (128 // 2 ** len(config.widths)) ** 2
    anchors = cells * len(config.anchor_sizes) * len(config.anchor_ratios)
    assert f"Of the {anchors} anchors of a picture a step trains on {config.rpn_samples}" in prose("20")


def test_20_stored_runs_are_what_its_cells_compute():
    """The first steps of both, anew; what is stored was rounded, and a different processor rounds differently."""
    stored = training_film.read()
    for name in ("A", "B"):
        fresh = training_film.film(name, [0, 3], judged=1)
        for part, values in fresh["losses"].items():
            assert values == pytest.approx(stored[name].losses[part][:3], rel=0.01, abs=0.002)
        assert [moment.step for moment in stored[name].moments] == list(training_film.MOMENTS[name])
        assert len(stored[name].total) == training_film.MOMENTS[name][-1]


def test_20_says_what_the_last_steps_of_run_a_buy():
    run = training_film.read()["A"]
    growth = {name: getattr(run.at(2000), name) - getattr(run.at(800), name) for name in ("AP", "AP50")}
    assert f"AP50 grows by {growth['AP50']:.2f}, and AP by twice as much" in prose("20")
    assert 1.8 < growth["AP"] / growth["AP50"] < 2.4
    assert f"At step 400 AP50 has reached {run.at(400).AP50:.2f}" in prose("20")
    assert "at step 100 the figure shows nothing" in prose("20")
    assert 0.12 < max(float(scores.max()) for _, scores, _ in run.at(100).found[:2]) < 0.3


def test_20_says_which_loss_shows_what_a_checkpoint_lacks():
    lines = output("20", "for forget in").splitlines()
    different = {line.split()[1].rstrip(":"): [int(k) for k in re.findall(r"\d", line.split("[")[1])] for line in lines}
    assert different["nothing"] == []
    for part in ("model", "seeds", "step"):
        assert different[part][0] == 0
    assert different["optimizer"] == [1, 2, 3, 4] and different["schedule"] == [2, 3, 4]
    assert "so the first loss is different already" in prose("20") and "The schedule shows last." in prose("20")


# ---- 21: what a repair is worth


def test_21_says_by_which_number_which_repair_is_worth_more():
    """The cells assert the bounds when they run; here their outcome stands beside the words."""
    table = re.findall(r"(\w[\w ]+?) +AP (\d\.\d\d) +AP50 (\d\.\d\d)", output("21", "worth = {"))
    worth = {name: (float(ap), float(ap50)) for name, ap, ap50 in table}
    as_it_is, names, half, exact = (
        worth[name] for name in ("as it is", "right names", "boxes half way", "exact boxes")
    )
    assert half[0] - as_it_is[0] > 5 * (names[0] - as_it_is[0]) > 0
    assert names[1] > as_it_is[1] == half[1] == exact[1]
    text = prose("21")
    assert f"bring most of what is left to gain, {as_it_is[1]:.2f} to {names[1]:.2f}" in text
    assert f"Right names bring {as_it_is[0]:.2f} to {names[0]:.2f}, and exact boxes {exact[0]:.2f}." in text
    assert f"move half of the way bring {half[0]:.2f}" in text


def test_21_asks_about_the_lists_that_it_prints():
    question = find_question("21.floor")
    counts = re.findall(r"(\d+) boxes, +(\d+) of them wrong", output("21", "def surest"))
    (boxes, wrong), (sure, sure_wrong) = counts
    assert f"by all {int(boxes):,} boxes, {wrong} of them wrong" in question.text
    assert f"by the {sure} with a score of 0.5 or more, {sure_wrong} of them wrong" in question.text


# ---- 22: trains on what it has repaired


def test_22_does_not_train_on_the_class_that_it_warned_of():
    (classes,) = (line for line in output("22", "engine.resolve").splitlines() if line.startswith("classes:"))
    assert classes.split()[1:] == list("0123456789")
    assert "smudge (1)" in output("22", "mine = None")


def test_22_reads_its_table_of_losses_right():
    """One row is nan, and there the sum that is finite is far larger than in any other picture."""
    rows = [line.split() for line in output("22", "for row, picture in").splitlines()[1:] if line.strip()]
    broken = [row for row in rows if "nan" in row]
    assert [row[0] for row in broken] == ["10"] and [k for k, text in enumerate(broken[0]) if text == "nan"] == [2, 4]
    assert float(broken[0][1]) > 10 * max(float(row[1]) for row in rows if row is not broken[0])
    assert "the sum of `rpn_objectness` is finite and far larger than that of any other picture" in prose("22")
    nan = torch.full((1, 1, 3), torch.nan)
    real = torch.ones(1, 1, dtype=torch.bool)
    assert match(nan, real, 0.6, 0.3, allow_low_quality=True).tolist() == [[0, 0, 0]]  # all belong to that box


def test_22_shows_wrong_annotations_whose_losses_look_sound():
    """33 and 58 are damaged, 17 is not: a loss of theirs is large, but 17 has one as large."""
    rows = [line.split() for line in output("22", "for row, picture in").splitlines()[1:] if line.strip()]
    sums = {row[0]: [float(text) for text in row[1:]] for row in rows}
    for damaged in ("33", "58"):
        assert all(a < 1.1 * b + 0.2 for a, b in zip(sums[damaged], sums["17"], strict=True))
    assert "None of them stands out: picture 17, which is annotated correctly, has sums of the same size" in prose("22")


def test_22_shows_two_faults_that_its_audit_passes():
    assert re.findall(r"(a 5 .*): (\d+) defects", output("22", "a 5 left out")) == [
        ("a 5 called an 8", "0"),
        ("a 5 left out", "0"),
    ]


def test_22_says_how_its_folder_counts_pixels(tmp_path):
    """The loader that the notebook trusts takes the numbers as they stand, so it begins every box a pixel too late."""
    scenes = data.DigitScenes("train", 2, seed=22, size=96)
    voc_folder.write_voc(tmp_path, scenes)
    (cell,) = (c for c in notebook("22").cells if c.source.startswith("def trusting"))
    names = {"folder": tmp_path, "ElementTree": ElementTree, "Image": Image, "torch": torch}
    exec(cell.source.split("\n\n\n")[0], names)
    off = names["trusting"]("0001") - scenes[1].boxes.round()
    assert off.tolist() == [[1, 1, 0, 0]] * len(off) and len(off)
    assert "begins a pixel too far to the right and a pixel too low" in prose("22")


def test_22_says_how_its_detectors_treat_a_box_without_width():
    flat, anchor = torch.tensor([[20.0, 12, 20, 28]]), torch.tensor([[10.0, 10, 30, 30]])
    width = float(ops.encode_boxes(flat, anchor, torch.ones(4))[0, 2])
    assert width == pytest.approx(math.log(0.001 / 20), rel=1e-5)
    assert "takes a thousandth of a pixel for its width" in prose("22")


def test_22_compares_its_run_with_that_of_notebook_20():
    other = training_film.read()["A"].at(1200).AP50
    assert f"had an AP50 of {other:.2f} by then" in prose("22")
    (trained,) = re.findall(r"pictures to train on: (\d+)", output("22", "engine.resolve"))
    steps, batch = own_boxes_film.MOMENTS[-1], engine.TrainConfig().batch_size
    assert f"After {steps:,} steps" in prose("22")
    assert f"each of {trained} pictures is shown about a hundred times" in prose("22")
    assert 95 < steps * batch / int(trained) < 110
