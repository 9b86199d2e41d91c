"""A detector that looks at the mirror image too finds in a mirrored picture what it finds in the picture."""

import copy
import dataclasses

import pytest
import torch

from frcnn_lite.detection import FasterRCNN, FasterRCNNConfig

SIDE = 64


@pytest.fixture(scope="module")
def detector():
    """Random weights; those of the last layers large enough for scores that differ."""
    torch.manual_seed(0)
    detector = FasterRCNN(FasterRCNNConfig(proposals=12, pre_nms_proposals=24, score_threshold=0.0)).eval()
    torch.nn.init.normal_(detector.box_head.classify.weight, std=0.3)
    torch.nn.init.normal_(detector.box_head.regress.weight, std=0.1)
    return detector


@torch.no_grad()
def test_a_mirrored_picture_has_the_same_objects_mirrored(detector):
    images = torch.rand(2, 3, SIDE, SIDE)
    alone, together = detector(images), copy.deepcopy(detector)
    together.config = dataclasses.replace(detector.config, mirrored=True)
    found, mirrored = together(images), together(images.flip(3))
    assert found.valid.all() and torch.equal(found.labels, mirrored.labels)
    torch.testing.assert_close(found.scores, mirrored.scores)
    left, top, right, bottom = mirrored.boxes.unbind(dim=2)
    torch.testing.assert_close(
        found.boxes, torch.stack([SIDE - right, top, SIDE - left, bottom], dim=2), rtol=0, atol=1e-3
    )
    assert not torch.equal(alone.labels, found.labels), "the mirror image had its say"
