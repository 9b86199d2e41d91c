"""Anchors: the boxes of fixed sizes at every cell of the feature map (Ren et al., "Faster R-CNN", 2015)."""

import torch
from torch import Tensor


def cell_anchors(sizes: tuple[float, ...], ratios: tuple[float, ...]) -> Tensor:
    """Anchors (A, 4) float32 around the origin, A = len(sizes) * len(ratios), sizes varying slowest.

    size: the square root of the area, in pixels; ratio: height / width.
    """
    size = torch.tensor(sizes).unsqueeze(1)
    root = torch.tensor(ratios).sqrt().unsqueeze(0)
    half_width, half_height = (size / root / 2).flatten(), (size * root / 2).flatten()
    return torch.stack([-half_width, -half_height, half_width, half_height], dim=1)


def grid_anchors(cell: Tensor, height: int, width: int, stride: int, offset: float = 0.5) -> Tensor:
    """Anchors (height * width * A, 4) of a feature map, from `cell` anchors (A, 4): row by row, A at each cell.

    A cell's anchors are around (column + offset) * stride; by default that is its middle.
    """
    y, x = (
        torch.arange(offset * stride, (offset + cells) * stride, stride, device=cell.device, dtype=cell.dtype)
        for cells in (height, width)
    )
    y, x = torch.meshgrid(y, x, indexing="ij")
    return (torch.stack([x, y, x, y], dim=-1).unsqueeze(2) + cell).view(-1, 4)
