"""Where the two ways to pool a region read it."""

import torch

from frcnn_lite.ops import roi_align, roi_bins


def test_a_region_lies_half_a_cell_beyond_its_box_and_is_one_cell_larger():
    """Where cell k stands for 16 pixels from 16 k on. RoIAlign has the same half cell unless `aligned` is true."""
    draw = torch.Generator().manual_seed(0)
    start, size = 32 + 400 * torch.rand(5000, 2, generator=draw), 16 + 400 * torch.rand(5000, 2, generator=draw)
    rois = torch.cat([torch.zeros(5000, 1), start, start + size], dim=1)
    _, rows, columns = roi_bins(rois, (60, 60), 1, 1, 1 / 16)
    read = 16 * torch.cat([columns, rows], dim=1)  # (R, 2, 2): across and down, from and to
    assert read.double().mean(dim=2).sub(start + size / 2).mean(dim=0).sub(8).abs().max() < 0.3
    assert read.diff(dim=2)[..., 0].sub(size).mean(dim=0).sub(16).abs().max() < 0.3
    place = (16 * torch.arange(60.0) + 8).expand(1, 1, 60, 60)  # each cell holds the pixel of its middle
    for aligned, beyond in ((False, 8), (True, 0)):
        found = roi_align(place, rois, 1, 1 / 16, 2, aligned).flatten()
        torch.testing.assert_close(found, start[:, 0] + size[:, 0] / 2 + beyond, rtol=0, atol=1e-2)
