"""Numbers and statements in the prose of notebook 14 that no output shows, computed and run again."""

import re
from functools import partial

import torch
from scipy.optimize import linear_sum_assignment
from told import cell, output, prose, says
from torchvision.ops import nms

from course.lessons.nb14 import candidates
from course.lessons.nb14.one_round import one_round_only
from frcnn_lite import data, ops

DETECTOR = candidates.digit_detector()
SCENES = data.DigitScenes("test", 400)


def one_round_beside_all(count, threshold):
    """Of 400 pictures: those in which one round keeps other boxes, and how many digits it leaves without any."""
    boxes, scores = candidates.best_boxes(DETECTOR, SCENES, count)
    overlaps = ops.box_iou(boxes, boxes)
    once, kept = one_round_only(overlaps, scores, threshold), ops.nms_mask(overlaps, scores, threshold)
    lost = 0
    for k, (own, first, all_of_them) in enumerate(zip(boxes, once, kept, strict=True)):
        on = ops.box_iou(SCENES[k].boxes, own) > 0.5
        lost += int(((on & all_of_them).any(dim=1) & ~(on & first).any(dim=1)).sum())
    return (once != kept).any(dim=1).nonzero()[:, 0].tolist(), lost


def test_shows_the_only_picture_of_400_in_which_one_round_is_wrong():
    assert one_round_beside_all(12, 0.4) == ([332], 1)
    assert "kept in 1 of 400" in output("14", "are kept in {differ}")
    assert "digits[332]" in cell("14", "digits[332]")


def test_says_how_little_one_round_shows_in_the_results():
    differ, lost = one_round_beside_all(192, 0.7)
    assert (len(differ), lost) == (400, 0)
    ((right, wrong),) = re.findall(r"pictures: (0\.\d+), and with one round (0\.\d+)", output("14", "ap_with(rule"))
    right, wrong = float(right), float(wrong)
    assert right < wrong < right + 0.05 and says("14", "here AP even rises a little")


def test_a_late_question_gives_the_same_boxes_and_a_list_that_is_cut_too():
    boxes, scores = (x[0] for x in candidates.best_boxes(DETECTOR, [SCENES[0]], 768))
    used = {count: nms(boxes[:count], scores[:count], 0.7)[:48].tolist() for count in (64, 192, 768)}
    assert used[192] == used[768] and len(used[768]) == 48 and len(used[64]) < 48
    assert says("14", "of our 768 boxes 192, of which the first 48 that are kept are used")
    suppresses = (ops.box_iou(boxes[:192], boxes[:192]) > 0.7).triu(diagonal=1)
    keep = torch.ones(192, dtype=torch.bool)
    for _ in range(16):
        keep = ~(suppresses & keep[:, None]).any(dim=0)
    assert keep.nonzero()[:48, 0].tolist() == used[192]


def test_says_how_many_boxes_ask_for_so_much_memory():
    said = r"allocate ([\d.]+) GiB` from `nms`: one bit for each pair of ([\d,]+) boxes"
    ((memory, boxes),) = re.findall(said, prose("14"))
    assert f"{int(boxes.replace(',', '')) ** 2 / 8 / 2**30:.2f}" == memory


def test_two_digits_overlap_by_more_than_a_threshold_that_loses_one():
    (boxes,), (scores,) = candidates.best_boxes(DETECTOR, [SCENES[332]], 12)
    kept = boxes[nms(boxes, scores, 0.4)]
    assert f"{ops.box_iou(kept, kept).fill_diagonal_(0).max():.2f}" == "0.28"
    assert says("14", "the boxes of the two overlap by 0.28")


def test_boxes_moved_apart_in_half_precision_are_kept_twice():
    pair = torch.tensor([[3400.0, 3400, 3440, 3440], [3402, 3402, 3442, 3442]])
    scores = torch.tensor([[0.9, 0.8]])
    for moved, kept in ((pair + 19 * 3443, 1), (pair.half() + 19 * (pair.half().max() + 1), 2)):
        assert ops.nms_mask(ops.box_iou(moved.float(), moved.float())[None], scores, 0.5).sum() == kept


def targets(weigh, overlaps, says_):
    target = torch.zeros_like(says_)
    target[linear_sum_assignment(weigh(overlaps, says_), maximize=True)[1]] = 1
    return target


def test_one_box_for_each_object_learns_slower_and_needs_the_score():
    school = candidates.lessons(DETECTOR, data.DigitScenes("train", 64))
    exam = candidates.lessons(DETECTOR, [SCENES[k] for k in range(100)])
    digits = sum(map(len, exam.overlaps))
    rules = {
        "many": lambda overlaps, _: (overlaps >= 0.5).any(dim=0).float(),
        "one": partial(targets, lambda overlaps, score: overlaps * score),
        "by overlap alone": partial(targets, lambda overlaps, _: overlaps),
    }
    found = {}
    for name, rule in rules.items():
        on_digits, count = candidates.boxes_on_digits(candidates.learn_scores(school, rule), exam)
        found[name] = on_digits / digits
        assert count / on_digits > 10 if name == "many" else count / on_digits < 1.5
    assert found["many"] > 0.95 and 0.55 < found["one"] < 0.8 and found["by overlap alone"] < 0.3
    assert says("14", "finds about two thirds of the digits, the first nearly all")
    assert says("14", "and the network finds far fewer")
