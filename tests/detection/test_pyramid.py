"""Pooling from a feature pyramid, beside torchvision's detector."""

import pytest
import torch

from frcnn_lite.detection import FasterRCNNConfig
from frcnn_lite.detection.box_head import BoxHead


def maps_and_regions(strides, channels=6, size=256):
    draw = torch.Generator().manual_seed(len(strides))
    maps = tuple(torch.randn(2, channels, size // s, size // s, generator=draw, dtype=torch.float64) for s in strides)
    corner = torch.rand(2, 40, 2, generator=draw, dtype=torch.float64) * size * 0.9
    side = 900 ** torch.rand(2, 40, 1, generator=draw, dtype=torch.float64) * torch.tensor([1.2, 0.9])  # of all levels
    return maps, torch.cat([corner, corner + side], dim=2)


def box_head(strides, roi_op):
    torch.manual_seed(0)
    config = FasterRCNNConfig(roi_op=roi_op, head_width=16, roi_output_size=5)
    return BoxHead(config, channels=6, strides=strides).double()


def indexed(boxes):
    image = torch.arange(2, dtype=boxes.dtype).view(2, 1, 1).expand(-1, boxes.shape[1], 1)
    return torch.cat([image, boxes], dim=2).flatten(0, 1)


@pytest.mark.parametrize("strides", [(4, 8, 16, 32), (8, 16)])
def test_regions_are_aligned_as_torchvisions_detector_aligns_them(strides):
    """Its pooler, given pictures, finds the strides by itself; ours is told them."""
    ops = pytest.importorskip("torchvision.ops")
    maps, boxes = maps_and_regions(strides)
    theirs = ops.MultiScaleRoIAlign([str(k) for k in range(len(maps))], 5, 2)
    pictures = {str(k): one for k, one in enumerate(maps)}
    expected = theirs(pictures, list(boxes), [(256, 256), (256, 256)])
    found = box_head(strides, "align").pool(maps, indexed(boxes))
    assert torch.equal(found, expected) and found.abs().sum(dim=(1, 2, 3)).count_nonzero() > 70


@pytest.mark.parametrize("strides", [(4, 8, 16, 32), (32, 32)])
def test_regions_are_pooled_from_the_level_that_suits_them(strides):
    ops = pytest.importorskip("torchvision.ops")
    maps, boxes = maps_and_regions(strides)
    rois = indexed(boxes)
    found = box_head(strides, "pool").pool(maps, rois)
    side = (boxes[..., 2:] - boxes[..., :2]).prod(dim=2).sqrt().flatten()
    lowest, highest = (torch.tensor(float(s)).log2() for s in (strides[0], strides[-1]))
    level = (torch.floor(4 + torch.log2(side / 224) + 1e-6).clamp(lowest, highest) - lowest).long()
    assert len(level.unique()) == (4 if strides[0] == 4 else 1)
    for k, chosen in enumerate(level.tolist()):
        expected = ops.roi_pool(maps[chosen], rois[k : k + 1], 5, 1 / strides[chosen])
        assert torch.equal(found[k : k + 1], expected)


def test_strides_are_right_on_maps_so_small_that_sizes_would_tell_others():
    """A map of nine cells at stride 4 has one of two at stride 32, which looks like stride 16 or 18."""
    maps = tuple(torch.randn(2, 6, side, side, dtype=torch.float64) for side in (9, 5, 3, 2))
    boxes = torch.tensor([[[0.0, 0, 36, 36]], [[3.0, 5, 20, 30]]], dtype=torch.float64)
    pyramid = box_head((4, 8, 16, 32), "align").pyramid
    assert pyramid(dict(enumerate(maps)), list(boxes), []).shape == (2, 6, 5, 5)
    assert pyramid.scales == [1 / 4, 1 / 8, 1 / 16, 1 / 32]
