"""What several exercises of this lesson try answers on."""

from random import Random

import torch
from torch import Tensor

from frcnn_lite.ops import box_iou


def clusters(generator: torch.Generator, count: int, scale: float = 100.0) -> Tensor:
    """Boxes around a few places, so that they overlap in chains."""
    places = torch.rand(3, 2, generator=generator)[torch.randint(3, (count,), generator=generator)]
    corner = places * 0.6 + torch.rand(count, 2, generator=generator) * 0.2
    return torch.cat([corner, corner + 0.15 + torch.rand(count, 2, generator=generator) * 0.1], dim=1) * scale


def generator_of(random: Random) -> torch.Generator:
    return torch.Generator().manual_seed(random.randrange(2**32))


def nms_by_hand(boxes: Tensor, threshold: float) -> list[int]:
    """Rows that greedy suppression keeps of boxes (R, 4), best first."""
    overlaps, kept = box_iou(boxes, boxes) > threshold, list[int]()
    for row in range(len(boxes)):
        if not any(overlaps[better, row] for better in kept):
            kept.append(row)
    return kept
