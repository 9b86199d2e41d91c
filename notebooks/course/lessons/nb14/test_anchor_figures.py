"""Suppression step by step."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import torch

from course.lessons.nb14.suppression import suppression_step
from course.lessons.nb14.suppression_rounds import kept_boxes, suppression_rounds
from frcnn_lite import ops

SVG = "{http://www.w3.org/2000/svg}"
IMAGE = np.zeros((3, 64, 64), dtype=np.uint8)
BOXES = np.array([[0, 0, 20, 20], [2, 2, 22, 22], [40, 40, 60, 60], [41, 41, 61, 61], [0, 40, 20, 60]], dtype=float)
SCORES = [0.5, 0.9, 0.8, 0.7, 0.1]


def drawn(figure, tag, **attributes):
    nodes = ElementTree.fromstring(figure.markup).iter(SVG + tag)
    return [node for node in nodes if all(node.get(name) == value for name, value in attributes.items())]


def words(figure):
    return [node.text for node in ElementTree.fromstring(figure.markup).iter(SVG + "text")]


def test_suppression_goes_by_score_and_names_who_removed_whom():
    start, first, end = (suppression_step(IMAGE, BOXES, SCORES, 0.5, step) for step in (0, 1, 99))
    assert "0 kept, 0 removed, 5 waiting" in start.description
    assert "1 kept, 1 removed, 3 waiting" in first.description and "removed by 1" in words(first)
    assert "3 kept, 2 removed, 0 waiting" in end.description and "removed by 2" in words(end)


def test_rounds_say_who_is_given_back_and_what_had_removed_it():
    row = np.array([[0, 0, 10, 10], [3, 0, 13, 10], [6, 0, 16, 10]], dtype=float)
    rule = (ops.box_iou(*2 * [torch.from_numpy(row)]) > 0.5).triu(diagonal=1).numpy()
    history = [[True] * 3, [True, False, False], [True, False, True]]
    figure = suppression_rounds(IMAGE, row, rule, history)
    assert figure.title == "Boxes kept after each round: 3, 1, 2"
    assert "round 1 keeps 1; round 2 keeps 1, 3; of which 3 are given back" in figure.description
    said = words(figure)
    assert said.count("given back") == 1 and said.count("removed by 2") == 1 and said.count("removed by 1") == 2
    assert len(drawn(figure, "polyline")) == 1  # the head of one arrow


def test_rounds_refuse_what_does_not_belong_to_the_boxes():
    with pytest.raises(ValueError, match="one entry for each of 5 boxes"):
        suppression_rounds(IMAGE, BOXES, np.eye(5), [[True] * 4])
    with pytest.raises(ValueError, match="1 to 8 can be drawn"):
        suppression_rounds(IMAGE, BOXES, np.eye(5), [])


def test_kept_boxes_are_drawn_side_by_side_and_numbered():
    figure = kept_boxes(IMAGE, BOXES, {"all": [True] * 5, "two": [True, False, True, False, False]}, "Kept")
    assert {"all: 5", "two: 2"} <= set(words(figure))
    assert "all: 1, 2, 3, 4, 5; two: 1, 3." in figure.description
    assert len(drawn(figure, "image")) == 2


def test_the_end_is_that_of_nms():
    boxes, scores = torch.from_numpy(BOXES).float()[None], torch.tensor([SCORES])
    for threshold in (0.2, 0.5, 0.9):
        kept = int(ops.nms_mask(ops.box_iou(boxes, boxes), scores, threshold).sum())
        figure = suppression_step(IMAGE, BOXES, SCORES, threshold, 99)
        assert f"{kept} kept, {5 - kept} removed, 0 waiting" in figure.description
