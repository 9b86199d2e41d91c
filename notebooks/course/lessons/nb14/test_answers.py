"""Answers to the exercises of notebook 14: right ones in an unusual form, and wrong ones that are nearly right."""

from functools import partial

import torch
from answers import all_right, all_wrong
from torchvision import ops as vision

from course.lessons.nb14.puzzles.keep_masks import _rounds


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


RIGHT = [
    ("14.keep_masks", as_many_rounds_as_boxes),
    ("14.keep_masks", until_the_number_stays),
    ("14.check_nms", check_nms_with_ties_and_edges),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("14.keep_masks", partial(_rounds, 10), "a fixed number of rounds"),
    ("14.keep_masks", partial(_rounds, 150), None),
    ("14.check_nms", check_nms_in_an_order_that_does_not_matter, "sorted boxes only"),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
