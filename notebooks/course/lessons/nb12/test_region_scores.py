"""Regions are drawn with what a box head takes and gives."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import torch

from course.lessons.nb12.region_scores import region_scores

SVG = "{http://www.w3.org/2000/svg}"
IMAGE = np.full((3, 64, 64), 200, dtype=np.uint8)
BOXES = torch.tensor([[4.0, 4, 24, 24], [40, 40, 60, 60]])


def drawn(figure, tag, **attributes):
    nodes = ElementTree.fromstring(figure.markup).iter(SVG + tag)
    return [node for node in nodes if all(node.get(name) == value for name, value in attributes.items())]


def words(figure):
    return [node.text for node in drawn(figure, "text")]


def test_regions_have_a_bar_for_every_score():
    scores = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    names = ["0", "1", "background"]
    figure = region_scores(IMAGE, BOXES, torch.rand(2, 6, 6), scores, names, "Regions")
    assert "2 regions" in figure.description and "region 1: 0 0.70; region 2: background 0.80" in figure.description
    assert {"0: 0.70", "background: 0.80"} <= set(words(figure))
    assert len(drawn(figure, "image")) == 4
    with pytest.raises(ValueError, match="2 names"):
        region_scores(IMAGE, BOXES, torch.rand(2, 6, 6), scores, names[:2], "Regions")
