"""Numbers and statements in the prose of notebook 13 that no output shows, computed and run again."""

import ast

import pytest
import torch
import torch.nn.functional as F
from told import cell, output, says
from torchvision.ops import sigmoid_focal_loss

import vgpu
from course.lessons.nb13.puzzles.check_encode import encode
from frcnn_lite import data, ops
from frcnn_lite.detection.anchors import cell_anchors, grid_anchors
from frcnn_lite.ops.matching import match

ANCHORS = grid_anchors(cell_anchors((18.0, 26.0, 36.0), (1.4,)), 16, 16, 8)
PICTURES = (7, 85, 9, 15)


def functions(words):
    """The functions that the one cell with these words defines."""
    tree = ast.parse(cell("13", words))
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    names = {"torch": torch, "F": F, "ops": ops}
    exec(compile(tree, "cell", "exec"), names)
    return names


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
    assert says("13", "Each edge is off by the distance it has to move, divided by the anchor's width + 1")
    assert says("13", "less than 0.7 pixels where it overlaps the box by 0.6, at any size")


def test_positive_anchors():
    batch = data.collate([data.DigitScenes("train", 100)[k] for k in PICTURES])
    found = match(ops.box_iou(batch.boxes, ANCHORS), batch.labels >= 0, 0.6, 0.3, allow_low_quality=True)
    positive = (found >= 0).sum(dim=1).tolist()
    share = f"{positive[1] / len(ANCHORS):.1%}".replace("%", " %")
    assert says("13", f"Of {len(ANCHORS)} anchors {positive[1]} are positive: {share}")
    assert says("13", f"the number of positive anchors, here {min(positive)} to {max(positive)} a picture")


def test_a_sample_is_drawn_without_a_question_to_the_gpu():
    sample = functions("def smallest")["sample"]
    batch = data.collate([data.DigitScenes("train", 100)[k] for k in PICTURES])
    with vgpu.virtual_gpus(1) as gpus:
        given = [x.to(gpus[0]) for x in (ANCHORS, batch.boxes, batch.labels >= 0, torch.arange(4))]
        with vgpu.trace() as trace:
            labels = sample(*given)
        assert not trace.copies() and ((labels >= 0).sum(dim=1) == 64).all()
        nothing = sample(*given[:2], torch.zeros_like(given[2]), given[3])
        assert ((nothing == 0).sum(dim=1) == 64).all() and (nothing < 1).all()
    assert says("13", "A sample by random keys needs no list and no waiting, and is the same on any GPU")


def test_the_focal_loss_is_torchvisions():
    focal = functions("def focal")["focal"]
    logits, wanted = torch.randn(100) * 3, (torch.rand(100) < 0.3).float()
    torch.testing.assert_close(focal(logits, wanted), sigmoid_focal_loss(logits, wanted), rtol=1e-4, atol=1e-6)
    assert torch.tensor(-4.6).sigmoid().item() == pytest.approx(0.01, abs=1e-4)
    assert "all logits -4.6:  60.9%" in output("13", "def focal")
    assert says("13", "That bias alone lifts the plain loss of all anchors to 61 %")


def test_says_what_two_gpus_make_of_their_own_quotients():
    assert f"{(2 / 4 + 6 / 36) / 2:.2f}" == "0.33" and (2 + 6) / (4 + 36) == 0.2
    assert says("13", "(2/4 + 6/36) / 2 = 0.33, and (2 + 6) / (4 + 36) = 0.2")


def test_says_how_anchors_in_an_area_overlap_it():
    area = torch.tensor([[64.0, 0, 128, 128]])
    x1, y1, x2, y2 = ANCHORS.unbind(dim=1)
    inside = (x1 >= 64) & (y1 >= 0) & (x2 <= 128) & (y2 <= 128)
    iou = ops.box_iou(area, ANCHORS)[0]
    words = f"{int(inside.sum())} anchors are wholly inside, with an IoU of {iou[inside].min():.2f} to"
    assert says("13", f"{words} {iou[inside].max():.2f}") and not (iou > 0.5).any()


def test_says_how_often_the_guide_waits():
    """One copy to the CPU and four back, for each picture: `test_post_000_targets.py` counts them."""
    assert 8 * (1 + 4) == 40 and says("13", "40 times, because a plain `.cpu()` or `.cuda()` waits for its copy")
