"""Numbers and statements in the prose of notebook 13 that no output shows, computed and run again."""

import torch
from told import says

from course.lessons.nb13.puzzles.check_encode import encode
from frcnn_lite import data, ops
from frcnn_lite.detection.anchors import cell_anchors, grid_anchors
from frcnn_lite.ops.matching import match


def test_says_how_far_an_edge_is_off_with_the_plus_one():
    """Its way, divided by the size of the anchor + 1; below 2/3 of a pixel where box and anchor overlap by 0.6."""
    draws = torch.Generator().manual_seed(0)
    for side in (8.0, 32.0, 128.0):
        anchors = torch.tensor([0.0, 0, side, side]).expand(100_000, 4)
        boxes = anchors + (torch.rand(100_000, 4, generator=draws) - torch.tensor([0.5, 0.5, 0.3, 0.3])) * side * 0.9
        back = ops.decode_boxes(encode(boxes, anchors, extra=1), anchors, torch.ones(4))
        torch.testing.assert_close(boxes - back, (boxes - anchors) / (side + 1), rtol=1e-4, atol=1e-3)
        fits = ops.box_iou(boxes[:, None], anchors[:, None])[:, 0, 0] >= 0.6
        assert 0.4 < (boxes - back)[fits].abs().max() < 0.667
    assert says("13", "Each edge is off by the way that it has to move, divided by the anchor's width + 1")
    assert says("13", "one that overlaps it by 0.6, the threshold above, makes one of less than 0.7 pixels")


def test_positive_anchors():
    anchors = grid_anchors(cell_anchors((18.0, 26.0, 36.0), (1.4,)), 16, 16, 8)
    boxes = data.DigitScenes("train", 100)[85].boxes[None]
    real = torch.ones(boxes.shape[:2], dtype=torch.bool)
    found = match(ops.box_iou(boxes, anchors), real, 0.6, 0.3, allow_low_quality=True)
    positive = int((found >= 0).sum())
    share = f"{positive / len(anchors):.1%}".replace("%", " %")
    assert says("13", f"Of {len(anchors)} anchors {positive} are positive: {share}")
