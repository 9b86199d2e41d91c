"""Anchors over a picture, and suppression step by step."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from course import figures
from course.figures.palette import BLUE, ORANGE, VERMILLION
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


def test_anchors_are_drawn_by_their_label():
    labels = [1, 1, 0, 0, -1]
    figure = figures.anchor_picture(IMAGE, BOXES[:1], BOXES, labels, "Anchors", dontcare=[[0, 0, 10, 10]])
    assert len(drawn(figure, "rect", stroke=BLUE)) == 2 + 1  # and the legend
    assert len(drawn(figure, "rect", stroke=ORANGE)) == 1 + 1
    assert len(drawn(figure, "circle", fill=VERMILLION)) == 2 + 1
    assert "5 anchors over a picture with 1 true boxes, and 1 don't-care areas" in figure.description
    assert "2 positive, 2 background, 1 left out" in figure.description


def test_anchors_of_one_cell_share_a_dot():
    nested = np.array([[10, 10, 20, 20], [5, 5, 25, 25]], dtype=float)
    figure = figures.anchor_picture(IMAGE, BOXES[:0], nested, [0, 0], "Anchors")
    assert len(drawn(figure, "circle", fill=VERMILLION)) == 1 + 1


def test_labels_must_be_one_for_each_anchor():
    with pytest.raises(ValueError, match="one entry for each of 5 anchors"):
        figures.anchor_picture(IMAGE, BOXES[:1], BOXES, [1, 0], "Anchors")


def test_suppression_goes_by_score_and_names_who_removed_whom():
    start, first, end = (figures.suppression_step(IMAGE, BOXES, SCORES, 0.5, step) for step in (0, 1, 99))
    assert "0 kept, 0 removed, 5 waiting" in start.description
    assert "1 kept, 1 removed, 3 waiting" in first.description and "removed by 1" in words(first)
    assert "3 kept, 2 removed, 0 waiting" in end.description and "removed by 2" in words(end)


def test_the_end_is_that_of_nms():
    import torch

    boxes, scores = torch.from_numpy(BOXES).float()[None], torch.tensor([SCORES])
    for threshold in (0.2, 0.5, 0.9):
        kept = int(ops.nms_mask(ops.box_iou(boxes, boxes), scores, threshold).sum())
        figure = figures.suppression_step(IMAGE, BOXES, SCORES, threshold, 99)
        assert f"{kept} kept, {5 - kept} removed, 0 waiting" in figure.description
