"""A small detector and a batch that holds the awkward cases: an image without objects, a full one, a tiny box."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from frcnn_lite.detection import FasterRCNN, FasterRCNNConfig

SMALL = FasterRCNNConfig(
    num_classes=3,
    widths=(8, 8, 16),
    blocks=(0, 0, 1),
    roi_channels=8,
    pre_nms_proposals=64,
    proposals=16,
    roi_samples=12,
    head_width=16,
    voting_iou=1.0,  # boxes stay where suppression left them; test_voting.py moves them
)


class Truth(NamedTuple):
    images: Tensor
    boxes: Tensor
    labels: Tensor
    seeds: Tensor


def make_truth(count: int, dtype: torch.dtype = torch.float32) -> Truth:
    """`count` images of 64 x 48; image i has i modulo 5 objects, so the first has none."""
    generator = torch.Generator().manual_seed(0)
    corner = torch.rand(count, 5, 2, generator=generator, dtype=dtype) * 20
    size = torch.rand(count, 5, 2, generator=generator, dtype=dtype) * 20 + 4
    real = torch.arange(5) < (torch.arange(count) % 5).unsqueeze(1)
    boxes = torch.cat([corner, corner + size], dim=-1) * real.unsqueeze(-1)
    labels = torch.where(real, torch.randint(0, 3, (count, 5), generator=generator), -1)
    images = torch.rand(count, 3, 64, 48, generator=generator, dtype=dtype)
    return Truth(images, boxes, labels, torch.arange(count) * 1_000_003)


@pytest.fixture
def model() -> FasterRCNN:
    torch.manual_seed(0)
    return FasterRCNN(SMALL)


@pytest.fixture
def truth() -> Truth:
    return make_truth(5)


@pytest.fixture
def truth64() -> Truth:
    return make_truth(5, torch.float64)
