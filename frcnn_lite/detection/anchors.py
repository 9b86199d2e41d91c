"""Anchors: the boxes of fixed sizes at every cell of the feature map (Ren et al., "Faster R-CNN", 2015)."""

import torch
from torch import Tensor


def cell_anchors(sizes: tuple[float, ...], ratios: tuple[float, ...]) -> Tensor:
    """Anchors around the origin.

    Args:
        sizes: square roots of the area, in pixels.
        ratios: height / width.

    Returns:
        (A, 4) float32, A = len(sizes) * len(ratios), sizes varying slowest.
    """
    size = torch.tensor(sizes).unsqueeze(1)
    root = torch.tensor(ratios).sqrt().unsqueeze(0)
    half_width, half_height = (size / root / 2).flatten(), (size * root / 2).flatten()
    return torch.stack([-half_width, -half_height, half_width, half_height], dim=1)


def grid_anchors(cell: Tensor, height: int, width: int, stride: int, offset: float = 0.5) -> Tensor:
    """Anchors of a feature map: row by row, A at each cell.

    Args:
        cell: (A, 4), those of one cell, around the origin.
        height: of the map, in cells.
        width: of the map, in cells.
        stride: pixels a cell.
        offset: a cell's anchors are around (column + offset) * stride; by default that is its middle.

    Returns:
        (height * width * A, 4).
    """
    y, x = (
        torch.arange(offset * stride, (offset + cells) * stride, stride, device=cell.device, dtype=cell.dtype)
        for cells in (height, width)
    )
    y, x = torch.meshgrid(y, x, indexing="ij")
    return (torch.stack([x, y, x, y], dim=-1).unsqueeze(2) + cell).view(-1, 4)
