"""The doubling table that notebook 17 takes apart, against the loops."""

import pytest
import torch
from torch import Tensor

from course import table_pool as module
from course.loops_roi_pool import loops_pool
from course.table_pool import table_pool, windows
from frcnn_lite.ops import roi_bins


@pytest.fixture(scope="module")
def case() -> tuple[Tensor, Tensor]:
    """Features with NaN and ties, and regions of which some are swapped and some lie outside the map."""
    draw = torch.Generator().manual_seed(0)
    features = torch.randn(2, 5, 13, 17, generator=draw)
    features[0, 0, 2:6], features[1, 2, 3:9], features[1, 3] = torch.nan, 1.0, -torch.inf
    corners = torch.rand(12, 4, generator=draw) * 160 - 20
    return features, torch.cat([torch.randint(0, 2, (12, 1), generator=draw).float(), corners], dim=1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_equals_the_loops_bit_for_bit(dtype, case):
    features, rois = case[0].to(dtype), case[1]
    expected = loops_pool(features, rois, 4, 3, 1 / 8)
    bins = roi_bins(rois, (13, 17), 4, 3, 1 / 8)
    for layout in (torch.contiguous_format, torch.channels_last):
        assert all(map(torch.equal, table_pool(features.contiguous(memory_format=layout), *bins), expected))


def test_channels_in_parts_equal_all_at_once(monkeypatch, case):
    """The channels are pooled in parts; a part boundary must not show."""
    features, rois = case
    bins = roi_bins(rois, (13, 17), 4, 3, 1 / 8)
    whole = table_pool(features.nan_to_num(), *bins)
    monkeypatch.setattr(module, "TABLE_NUMBERS", 2 * 2 * 13 * 17 * 4 * 5)
    assert all(map(torch.equal, table_pool(features.nan_to_num(), *bins), whole))


def test_windows_cover_every_bin_from_its_two_ends():
    bins = torch.tensor([(start, end) for start in range(20) for end in range(start + 1, 21)])
    exponent, (first, second) = windows(bins, 20)
    size = 2**exponent
    assert torch.equal(first, bins[:, 0]) and torch.equal(second + size, bins[:, 1])
    assert (second <= first + size).all(), "the two windows leave no cell out"
