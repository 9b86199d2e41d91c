from types import SimpleNamespace

import pytest
import torch

from frcnn_lite.detection.anchors import cell_anchors, grid_anchors
from frcnn_lite.detection.config import FasterRCNNConfig
from frcnn_lite.detection.rpn import RegionProposalNetwork


def test_cell_anchors_have_the_area_and_ratio_they_are_named_for() -> None:
    anchors = cell_anchors((16.0, 32.0), (0.5, 1.0, 2.0))
    width, height = (anchors[:, 2:] - anchors[:, :2]).unbind(1)
    torch.testing.assert_close(width * height, torch.tensor([256.0] * 3 + [1024.0] * 3))
    torch.testing.assert_close(height / width, torch.tensor([0.5, 1.0, 2.0] * 2))
    assert torch.equal(anchors[:, :2], -anchors[:, 2:])


def test_grid_runs_row_by_row_with_all_anchors_of_a_cell_together() -> None:
    anchors = grid_anchors(cell_anchors((4.0, 8.0), (1.0,)), height=2, width=3, stride=8)
    centers = (anchors[:, :2] + anchors[:, 2:]) / 2
    expected = [[x, y] for y in (4.0, 12.0) for x in (4.0, 12.0, 20.0) for _ in range(2)]
    assert centers.tolist() == expected
    assert anchors[:2].tolist() == [[2.0, 2.0, 6.0, 6.0], [0.0, 0.0, 8.0, 8.0]]


def test_model_has_one_prediction_for_each_anchor(model, truth) -> None:
    output = model.rpn(model.backbone(truth.images).rpn)
    assert output.logits.shape == (5, len(output.anchors)) == (5, 8 * 6 * 3)


@pytest.mark.parametrize("levels", [1, 2])
def test_anchors_in_torchvisions_style_are_torchvisions(levels) -> None:
    rpn = pytest.importorskip("torchvision.models.detection.rpn")
    sizes, ratios = (9.0, 17.0, 33.0, 50.0), (0.5, 1.0, 2.0)
    per_level = 4 // levels
    config = FasterRCNNConfig(anchor_sizes=sizes, anchor_ratios=ratios, anchor_style="torchvision")
    ours = RegionProposalNetwork(config, channels=8, strides=(8, 16)[:levels])
    maps = tuple(torch.zeros(1, 8, 64 // stride, 96 // stride) for stride in (8, 16)[:levels])
    groups = tuple(sizes[k : k + per_level] for k in range(0, 4, per_level))
    theirs = rpn.AnchorGenerator(groups, (ratios,) * levels)
    images = SimpleNamespace(tensors=torch.zeros(1, 3, 64, 96), image_sizes=[(64, 96)])
    assert torch.equal(ours(maps).anchors, theirs(images, list(maps))[0])
