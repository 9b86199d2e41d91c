"""RoIAlign over a pyramid against torchvision's."""

import math

import pytest
import torch

from frcnn_lite.ops.multiscale import multiscale_roi_align, region_level


def pyramid(size, channels, strides, generator, dtype=torch.float32):
    return [
        torch.randn(2, channels, size // s, size // s, generator=generator, dtype=dtype).requires_grad_()
        for s in strides
    ]


def random_rois(count, size, generator, dtype=torch.float32):
    """Of all sizes; some reach outside the picture, some are empty."""
    corners = (torch.rand(count, 2, generator=generator, dtype=dtype) * 1.2 - 0.1) * size
    sides = torch.rand(count, 2, generator=generator, dtype=dtype) ** 3 * size
    sides[:2] = 0
    image = torch.randint(2, (count, 1), generator=generator).to(dtype)
    return torch.cat([image, corners, corners + sides], dim=1)


@pytest.mark.parametrize("strides", [(4, 8, 16, 32), (8, 16), (16,)])
@pytest.mark.parametrize("sampling_ratio", [1, 2, 3])
def test_values_and_gradients_are_those_of_torchvision(strides, sampling_ratio):
    ops = pytest.importorskip("torchvision.ops")
    generator = torch.Generator().manual_seed(len(strides))
    maps = pyramid(256, 6, strides, generator, torch.float64)
    rois = random_rois(60, 256, generator, torch.float64)
    ours = multiscale_roi_align(maps, rois, 5, strides, sampling_ratio)
    level = region_level(rois[:, 1:], strides)
    theirs = torch.zeros_like(ours)
    for number, (features, stride) in enumerate(zip(maps, strides, strict=True)):
        here = level == number
        theirs[here] = ops.roi_align(features, rois[here], 5, 1 / stride, sampling_ratio)
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)
    upstream = torch.randn(ours.shape, generator=generator, dtype=torch.float64)
    for a, b in zip(*(torch.autograd.grad(out, maps, upstream) for out in (ours, theirs)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("strides", [(4, 8, 16, 32), (8, 16), (32, 32)])
def test_levels_are_chosen_as_torchvision_does(strides):
    poolers = pytest.importorskip("torchvision.ops.poolers")
    generator = torch.Generator().manual_seed(0)
    boxes = random_rois(500, 1000, generator)[:, 1:]
    boxes = torch.cat([boxes, torch.tensor([[0.0, 0, side, side] for side in (111.99, 112, 223.99, 224, 448, 449)])])
    boxes = torch.cat([boxes, boxes * 5])
    wanted = poolers.LevelMapper(int(math.log2(strides[0])), int(math.log2(strides[-1])))([boxes])
    assert torch.equal(region_level(boxes, strides), wanted)


def test_one_stride_a_map():
    with pytest.raises(ValueError, match="strides must have one number a map, got 2 for 1 maps"):
        multiscale_roi_align([torch.zeros(1, 1, 4, 4)], torch.zeros(1, 5), 2, [4, 8])
