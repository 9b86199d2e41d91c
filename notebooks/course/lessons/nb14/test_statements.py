"""Numbers and statements in the prose of notebook 14 that no output shows, computed and run again."""

import re

import torch
from told import cell, output, prose, says

from course.kit.files import NOTEBOOKS
from frcnn_lite import data, engine, ops
from frcnn_lite.detection import suppress


def test_counts_the_waits_inside_suppression():
    """On a CUDA GPU the host asks after every round; the table of the notebook counts that as a wait."""
    table = output("14", "all in one batch").splitlines()[1:]
    rows = [list(map(int, line.split())) for line in table]
    assert [row[0] for row in rows] == [1, 4, 8] and rows[0][1] == rows[0][2]
    words = {5: "five", 6: "six", 7: "seven"}[rows[2][2]]
    assert says("14", f"{words} rounds settle all eight pictures")
    assert says("14", f"the host waits {rows[2][1]} times")


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


def test_shows_the_only_picture_of_400_in_which_one_round_is_wrong():
    assert one_round_beside_all(12, 0.4) == ([332], 1)
    assert says("14", "Of the 400 pictures in this test set, with twelve boxes each, this is the only one")
    assert "digit_scenes[332]" in cell("14", "def best_boxes")


def test_says_how_little_one_round_shows_in_the_results(monkeypatch):
    differ, lost = one_round_beside_all(192, 0.7)
    assert (len(differ), lost) == (400, 0)
    assert says("14", "the 192 boxes and the threshold of 0.7 that the detector itself uses, they disagree in all 400")
    assert says("14", "no digit loses its last box, and average precision does not fall")
    detector, scenes = engine.load_weights(NOTEBOOKS / "checkpoints" / "digits.pt"), data.DigitScenes("test", 100)
    right = engine.average_precision(engine.judge(detector, scenes), scenes.class_names).AP

    def one_round(iou, scores, threshold, classes=None):
        above = scores.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
        suppresses = (iou > threshold) & (above[:, :, None] < above[:, None])
        return ~(suppresses if classes is None else suppresses & (classes[:, :, None] == classes[:, None])).any(dim=1)

    monkeypatch.setattr(suppress, "nms_mask", one_round)
    wrong = engine.average_precision(engine.judge(detector, scenes), scenes.class_names).AP
    assert wrong >= right


def test_says_how_many_boxes_ask_for_so_much_memory():
    said = r"allocate ([\d.]+) GiB` from `nms`. That is one bit for each pair of ([\d,]+) boxes"
    ((memory, boxes),) = re.findall(said, prose("14"))
    assert f"{int(boxes.replace(',', '')) ** 2 / 8 / 2**30:.2f}" == memory
