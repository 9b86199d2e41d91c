"""Answers to the exercises of notebook 13: right ones in an unusual form, and wrong ones that are nearly right."""

import math

import torch
from answers import all_right, all_wrong

from course.lessons.nb13.puzzles.anchor_labels import anchor_labels


def label_by_label(iou, positive_iou, negative_iou):
    labels = []
    for k in range(iou.shape[1]):
        best = max(float(x) for x in iou[:, k])
        rescued = any(row[k] > 0 and row[k] == row.max() for row in iou)
        labels.append(1 if rescued or best >= positive_iou else 0 if best < negative_iou else -1)
    return torch.tensor(labels)


def rescue_with_a_tolerance(iou, positive_iou, negative_iou):
    labels = anchor_labels(iou, positive_iou, negative_iou)
    for row in iou:
        labels[torch.isclose(row, row.max(), rtol=1e-3) & (row > 0)] = 1
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


RIGHT = [
    ("13.anchor_labels", label_by_label),
    ("13.check_encode", check_encode_by_hand),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("13.anchor_labels", rescue_with_a_tolerance, "nearly the best"),
    ("13.anchor_labels", rescue_above_a_threshold, "background last"),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
