"""Anchors are drawn by their labels, and counted in the title."""

import torch

from course.lessons.nb13.label_maps import iou_maps, label_maps
from frcnn_lite.data.batch import Scene

IMAGE = torch.full((3, 128, 128), 200, dtype=torch.uint8)
SCENE = Scene(IMAGE, torch.tensor([[4.0, 4, 24, 24]]), torch.tensor([3]), image_id=0)
ANCHORS = torch.tensor([[4.0, 4, 24, 24]]).expand(768, 4)


def test_a_label_map_counts_what_is_trained():
    labels = torch.full((768,), -1)
    labels[:5], labels[5:12] = 1, 0
    figure = label_maps(SCENE, ANCHORS, labels)
    assert "5 positive, 7 background, 756 left out" in figure.markup
    assert "5 boxes marked object" in figure.description
    assert "size 18: 2 positive, 2 background, 252 left out" in figure.description


def test_an_overlap_is_a_map_for_each_size():
    figure = iou_maps(SCENE, torch.rand(2, 768))
    assert all(f"anchors of size {size}: 16 x 16 numbers" in figure.description for size in (18, 26, 36))
