"""Answers to the exercises of the detector's notebooks that are written in other ways: right ones pass, wrong ones do
not, and a name is given only to what it fits."""

import copy
import math
import random
from functools import partial

import numpy as np
import pytest
import torch
from answers import assert_right, assert_wrong, pairs
from torchvision import ops as vision

from course.lessons.nb13.puzzles.anchor_labels import anchor_labels
from course.lessons.nb14.puzzles.keep_masks import _rounds
from course.lessons.nb20.puzzles.left_alone import a_name_that_begins_another
from course.lessons.nb21.puzzles.check_ap import average_precision
from course.lessons.nb22.puzzles.faults import faults
from frcnn_lite import ops


def nested(output):
    pictures, channels, height, width = output.shape
    return output.view(pictures, channels // 5, 5, height, width).permute(0, 3, 4, 1, 2).reshape(pictures, -1, 5)


def check_rows_with_noise(rows):
    output = torch.rand(2, 10, 3, 4)
    table = rows(output)
    assert table.shape == (2, 24, 5)
    for p in range(2):
        for y in range(3):
            for x in range(4):
                assert table[p, (y * 4 + x) * 2 : (y * 4 + x) * 2 + 2].flatten().equal(output[p, :, y, x])


def exp_of_the_difference(logits):
    shares = (logits - logits.amax(dim=1, keepdim=True)).exp()
    shares = (shares / shares.sum(dim=1, keepdim=True))[:, :-1]
    return shares.argmax(dim=1), shares.amax(dim=1)


def exp_as_it_is(logits):
    shares = (logits.exp() / logits.exp().sum(dim=1, keepdim=True))[:, :-1]
    return shares.argmax(dim=1), shares.amax(dim=1)


def names_as_floats(logits):
    names, scores = exp_of_the_difference(logits)
    return names.float(), scores


def label_by_label(iou, positive_iou, negative_iou):
    labels = []
    for k in range(iou.shape[1]):
        best = max(float(x) for x in iou[:, k])
        rescued = any(row[k] > 0 and row[k] == row.max() for row in iou)
        labels.append(1 if rescued or best >= positive_iou else 0 if best < negative_iou else -1)
    return torch.tensor(labels)


def rescue_with_a_tolerance(iou, positive_iou, negative_iou):
    labels = anchor_labels(iou, positive_iou, negative_iou)
    top = iou.amax(dim=1, keepdim=True)
    labels[((iou > top - 1e-3) & (top > 0)).any(dim=0)] = 1
    return labels


def rescue_above_a_threshold(iou, positive_iou, negative_iou):
    top = iou.amax(dim=1, keepdim=True)
    labels = torch.where(iou.amax(dim=0) < negative_iou, 0, -1)
    rescued = ((iou == top) & (top >= negative_iou)).any(dim=0)
    labels[rescued | (iou.amax(dim=0) >= positive_iou)] = 1
    return labels


def check_encode_by_hand(encode):
    anchors, boxes = torch.tensor([[10.0, 20, 30, 60]]), torch.tensor([[15.0, 25, 55, 45]])
    expected = torch.tensor([[0.75, -0.125, math.log(2), -math.log(2)]])
    torch.testing.assert_close(encode(boxes, anchors), expected)


def left_out_pixel_by_pixel(anchors, areas):
    found = []
    for x1, y1, x2, y2 in anchors.tolist():
        inside = sum(max(0, min(x2, c) - max(x1, a)) * max(0, min(y2, d) - max(y1, b)) for a, b, c, d in areas.tolist())
        found.append(inside / ((x2 - x1) * (y2 - y1)) > 0.5)
    return torch.tensor(found)


def nms_of_torchvision(boxes, threshold):
    return vision.nms(boxes, -torch.arange(len(boxes), dtype=boxes.dtype), threshold).tolist()


def nms_in_a_few_rounds(boxes, threshold):
    suppresses = (ops.box_iou(boxes, boxes) > threshold).triu(diagonal=1)
    return _rounds(12, suppresses[None])[0].nonzero()[:, 0].tolist()


def as_many_rounds_as_boxes(suppresses):
    return _rounds(suppresses.shape[1], suppresses)


def until_the_number_stays(suppresses):
    """Right, because of two rounds in a row one keeps no box that the other one does not keep."""
    keep = torch.ones_like(suppresses[:, 0])
    while True:
        after = ~(suppresses & keep[:, :, None]).any(dim=1)
        if after.sum() == keep.sum():
            return after
        keep = after


def check_nms_with_ties_and_edges(program):
    """Equal scores, no boxes at all, an overlap of exactly the threshold, and torchvision on a hundred boxes."""
    twins = torch.tensor([[0.0, 0, 10, 10], [0, 0, 10, 10]])
    assert program(twins, torch.tensor([0.5, 0.5]), 0.5).tolist() == [True, False]
    assert program(torch.zeros(0, 4), torch.zeros(0), 0.5).tolist() == []
    part = torch.tensor([[0.0, 0, 10, 10], [0, 0, 10, 6]])
    for boxes, threshold in ((part, 0.6), (part, 0.7), (part / 128, 0.5)):
        kept = torch.zeros(2, dtype=torch.bool)
        kept[vision.nms(boxes, torch.tensor([0.9, 0.8]), threshold)] = True
        assert program(boxes, torch.tensor([0.9, 0.8]), threshold).equal(kept)
    draws = torch.Generator().manual_seed(1)
    corner = torch.rand(100, 2, generator=draws) / 2
    boxes, scores = torch.cat([corner, corner + 0.2], dim=1), torch.rand(100, generator=draws)
    for threshold in (0.3, 0.5):
        kept = torch.zeros(100, dtype=torch.bool)
        kept[vision.nms(boxes, scores, threshold)] = True
        assert program(boxes, scores, threshold).equal(kept)


def check_nms_in_an_order_that_does_not_matter(program):
    """The boxes are not sorted, and whoever ignores the scores keeps the right ones all the same."""
    row = torch.tensor([[60.0, 60, 80, 80], [0, 0, 10, 10], [3, 0, 13, 10], [6, 0, 16, 10]])
    for boxes in (row, row / 128):
        assert program(boxes, torch.tensor([0.6, 0.9, 0.8, 0.7]), 0.5).tolist() == [True, True, False, True]
        assert program(boxes[1:3], torch.tensor([0.9, 0.8]), 0.5).tolist() == [True, False]


def pool_of_torchvision(plane, box, count):
    return vision.roi_pool(plane[None, None], torch.tensor([[0.0, *box]]), count, 1 / 16)[0, 0]


def pool_from_zero(plane, box, count):
    return pool_of_torchvision(plane, box, count).clamp(min=0)


def check_align_in_four_bins(program):
    place = (16 * torch.arange(12.0) + 8).expand(1, 1, 12, 12)
    rois = torch.tensor([[0.0, 40, 24, 104, 120]])
    across = program(place, rois, 2, 1 / 16)[0, 0]
    down = program(place.mT.contiguous(), rois, 2, 1 / 16)[0, 0]
    torch.testing.assert_close(across, torch.tensor([[56.0, 88], [56, 88]]), atol=0.5, rtol=0)
    torch.testing.assert_close(down, torch.tensor([[48.0, 48], [96, 96]]), atol=0.5, rtol=0)


def backward_by_autograd(plane, bins, grad):
    leaf = plane.clone().requires_grad_()
    found = [leaf[t:b, l:r].flatten().max(dim=0).values if t < b and l < r else leaf.sum() * 0 for t, b, l, r in bins]  # noqa: E741
    return torch.autograd.grad((torch.stack(found) * grad).sum(), leaf)[0]


def left_alone_by_a_copy(model, step):
    before = copy.deepcopy(model)
    step()
    pairs = zip(model.named_children(), before.children(), strict=True)
    return [n for (n, new), old in pairs if all(map(torch.equal, new.parameters(), old.parameters()))]


def left_alone_by_sums_of_squares(model, step):
    def squares():
        return {n: [p.square().sum().item() for p in child.parameters()] for n, child in model.named_children()}

    before = squares()
    step()
    after = squares()
    return [name for name in after if after[name] == before[name]]


def left_alone_after_two_steps(model, step):
    return left_alone_by_a_copy(model, lambda: (step(), step()))


def check_resume_by_the_last_loss(run):
    assert run(stop=7)[-1] == run()[-1]


def judge_by_sorting(overlaps, ignored):
    taken, words = set(), []
    for row in overlaps:
        fits = sorted((k for k in range(len(row)) if row[k] >= 0.5), key=lambda k: (-row[k], -k))
        own = next((k for k in fits if not ignored[k] and k not in taken), None)
        taken.add(own)
        words.append("right" if own is not None else "ignored" if any(ignored[k] for k in fits) else "wrong")
    return words


def check_ap_on_many_lists(program):
    draws = random.Random(3)
    for objects in (10, 20, *range(5, 35)):
        right = [True] * (7 * objects // 10) + [draws.random() < 0.3 for _ in range(9)]
        while sum(right) > objects:
            right.pop()
        draws.shuffle(right)
        assert abs(program(right, objects) - average_precision(right, objects)) < 1e-6


def check_ap_of_seven_in_ten(program):
    """70 recalls have a box: 0.70 among the 101 is a bit more than 7 / 10."""
    assert abs(program([True] * 7, 10) - 70 / 101) < 1e-9
    assert abs(program([False, True, True], 4) - 51 * 2 / 3 / 101) < 1e-9


def culprits_by_numpy(sums, image_ids):
    bad = ~np.isfinite(np.array(list(sums.values()))).all(axis=0)
    return [one for one, broken in zip(image_ids, bad, strict=True) if broken]


def culprits_without_minus_infinity(sums, image_ids):
    rows = zip(image_ids, zip(*sums.values(), strict=True), strict=True)
    return [one for one, row in rows if any(math.isnan(x) or x == math.inf for x in row)]


def culprits_by_size(sums, image_ids):
    rows = zip(image_ids, zip(*sums.values(), strict=True), strict=True)
    return [one for one, row in rows if not all(abs(x) < 1e6 for x in row)]


def faults_with_a_set(annotated, image, objects, class_names):
    words, seen = [], set()
    if annotated and all(annotated) and tuple(annotated) != tuple(image):
        words.append("other size")
    words += [] if objects else ["empty"]
    for name, box in objects:
        x1, y1, x2, y2 = box
        inside = x1 >= -1 and y1 >= -1 and x2 <= image[0] + 1 and y2 <= image[1] + 1
        area = x1 < x2 and y1 < y2 and math.isfinite(sum(box))
        checks = ((name in class_names, "unknown class"), (area, "no area"), (inside, "outside"))
        word = next((word for fine, word in checks if not fine), "twice" if (name, box) in seen else None)
        words += [word] if word else []
        seen.add((name, box))
    return words


def faults_beside_the_last(annotated, image, objects, class_names):
    """Compares each object with the one before it alone."""
    words = faults(annotated, image, objects[:1], class_names)
    for k in range(1, len(objects)):
        alone = faults(None, image, objects[k : k + 1], class_names)
        words += alone or ["twice"] * (objects[k] == objects[k - 1])
    return words


def faults_of_two_zeros(annotated, image, objects, class_names):
    """Takes (0, 100) for the size of a picture."""
    size = None if annotated in (None, (0, 0)) else tuple(max(side, 1) for side in annotated)
    return faults(size, image, objects, class_names)


def check_reader_with_parts(read):
    """VOC's annotations of people have parts with boxes of their own, which are not the object's."""
    text = (
        "<annotation><object><name>a</name><bndbox><ymin>7</ymin><xmin>60</xmin><ymax>41</ymax><xmax>94</xmax></bndbox>"
        "<part><name>head</name><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax></bndbox></part></object>"
        "<object><name>b</name><bndbox><xmin>11</xmin><ymin>22</ymin><xmax>33</xmax><ymax>55</ymax></bndbox></object>"
        "</annotation>"
    )
    assert [(n, tuple(box)) for n, box in read(text)] == [("a", (59, 6, 94, 41)), ("b", (10, 21, 33, 55))]


RIGHT = {
    "12.rows_of_anchors": [nested],
    "12.check_rows": [check_rows_with_noise],
    "12.name_regions": [exp_of_the_difference],
    "13.anchor_labels": [label_by_label],
    "13.check_encode": [check_encode_by_hand],
    "13.left_out": [left_out_pixel_by_pixel],
    "14.nms_by_hand": [nms_of_torchvision],
    "14.keep_masks": [as_many_rounds_as_boxes, until_the_number_stays],
    "14.check_nms": [check_nms_with_ties_and_edges],
    "15.pool_by_hand": [pool_of_torchvision],
    "15.check_align": [check_align_in_four_bins],
    "15.roi_pool_backward": [backward_by_autograd],
    "20.left_alone": [left_alone_by_a_copy],
    "20.check_resume": [check_resume_by_the_last_loss],
    "21.judge_boxes": [judge_by_sorting],
    "21.check_ap": [check_ap_on_many_lists, check_ap_of_seven_in_ten],
    "22.culprits": [culprits_by_numpy],
    "22.faults": [faults_with_a_set],
    "22.check_reader": [check_reader_with_parts],
}
WRONG = {
    "12.name_regions": [exp_as_it_is, names_as_floats],
    "13.anchor_labels": [rescue_with_a_tolerance, rescue_above_a_threshold],
    "14.nms_by_hand": [nms_in_a_few_rounds],
    "14.keep_masks": [partial(_rounds, 10), partial(_rounds, 150)],
    "14.check_nms": [check_nms_in_an_order_that_does_not_matter],
    "15.pool_by_hand": [pool_from_zero],
    "20.left_alone": [a_name_that_begins_another, left_alone_by_sums_of_squares, left_alone_after_two_steps],
    "22.culprits": [culprits_without_minus_infinity, culprits_by_size],
    "22.faults": [faults_beside_the_last, faults_of_two_zeros],
}


@pytest.mark.parametrize(("key", "answer"), pairs(RIGHT))
def test_a_right_answer_passes(key, answer):
    assert_right(key, answer)


@pytest.mark.parametrize(("key", "answer"), pairs(WRONG))
def test_a_wrong_answer_is_refused(key, answer):
    assert_wrong(key, answer)
