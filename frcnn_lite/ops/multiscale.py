"""RoIAlign over a feature pyramid, as one weighted sum of rows.

RoIAlign (He et al., "Mask R-CNN", 2017) reads each bin at a grid of points, each point as a bilinear mix of four cells.
So a bin is a weighted sum of cells, and which cells and weights follows from the region alone. With the cells of all
levels laid out as rows of one matrix, that sum is an embedding bag: one operator for any number of levels, without a
data-dependent shape, where selecting the regions of each level needs one.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

CANONICAL_SIDE, CANONICAL_STRIDE = 224, 16
"""A region of ImageNet's size is pooled at stride 16 (Lin et al., "Feature pyramid networks", 2017, equation 1)."""


def region_level(boxes: Tensor, strides: Sequence[int]) -> Tensor:
    """The level (R,) int64 for boxes (R, 4): the one whose stride is to 16 what the box's side is to 224, rounded down.

    Levels are counted in doublings of the stride: of two levels of one stride, as a MobileNet has them, the first is
    chosen, as in torchvision.
    """
    side = (boxes[:, 2:] - boxes[:, :2]).clamp(min=0).prod(dim=1).sqrt()
    octave = torch.log2(side / CANONICAL_SIDE * (CANONICAL_STRIDE / strides[0])) + 1e-6  # torchvision's margin
    return octave.floor().clamp(0, round(math.log2(strides[-1] / strides[0]))).long()


def multiscale_roi_align(
    maps: Sequence[Tensor], rois: Tensor, output_size: int, strides: Sequence[int], sampling_ratio: int = 2
) -> Tensor:
    """RoIAlign of each region from the level that suits its size; one map is a pyramid of one level.

    Args:
        maps: (B, C, h, w) each, finest first.
        rois: (R, 5): index of the image in this batch, then a box `xyxy` in image pixels.
        output_size: bins a side.
        strides: image pixels per cell of each map.
        sampling_ratio: points a bin and side.

    Returns:
        (R, C, output_size, output_size), as `torchvision.ops.MultiScaleRoIAlign` gives (`aligned=False`).

    Raises ValueError when there are not as many strides as maps.
    """
    if len(maps) != len(strides) or not maps:
        raise ValueError(f"strides must have one number a map, got {len(strides)} for {len(maps)} maps")
    channels = maps[0].shape[1]
    rows = torch.cat([one.permute(0, 2, 3, 1).reshape(-1, channels) for one in maps])
    grid = _grid_of(maps, rois, strides)
    box = rois[:, 1:] * grid.scale.unsqueeze(1)
    y, y_weight = _taps(box[:, 1], box[:, 3], grid.height, output_size, sampling_ratio)
    x, x_weight = _taps(box[:, 0], box[:, 2], grid.width, output_size, sampling_ratio)
    # (R, bins down, bins across, taps down, taps across)
    cells = _outer(y * grid.width.view(-1, 1, 1), x, torch.add) + grid.start.view(-1, 1, 1, 1, 1)
    weights = _outer(y_weight, x_weight, torch.mul).to(rows.dtype)
    bags = cells.shape[3] * cells.shape[4]
    pooled = F.embedding_bag(cells.view(-1, bags), rows, mode="sum", per_sample_weights=weights.view(-1, bags))
    return pooled.view(len(rois), output_size, output_size, channels).permute(0, 3, 1, 2)


class _Grid(NamedTuple):
    """Of each region (R,): the first row of its image on its level, that map's height and width, cells per pixel."""

    start: Tensor
    height: Tensor
    width: Tensor
    scale: Tensor


def _grid_of(maps: Sequence[Tensor], rois: Tensor, strides: Sequence[int]) -> _Grid:
    level, image = region_level(rois[:, 1:], strides), rois[:, 0].long()
    sizes = [one.shape[2:] for one in maps]
    cells = [one.shape[0] * one.shape[2] * one.shape[3] for one in maps]
    first = list(itertools.accumulate(cells, initial=0))[:-1]
    # Numbers of the level by comparison, not from a table: a table would have to be copied to the device each time.
    start, height, width = (_by_level(level, numbers) for numbers in (first, *zip(*sizes, strict=True)))
    scale = _by_level(level, [1 / stride for stride in strides]).to(rois.dtype)
    return _Grid(start + image * height * width, height, width, scale)


def _by_level(level: Tensor, numbers: Sequence[float]) -> Tensor:
    chosen = torch.full_like(level, numbers[0], dtype=torch.float64 if isinstance(numbers[0], float) else None)
    for number, value in enumerate(numbers[1:], start=1):
        chosen = torch.where(level == number, value, chosen)
    return chosen


def _taps(low: Tensor, high: Tensor, size: Tensor, bins: int, points: int) -> tuple[Tensor, Tensor]:
    """Cells and weights (R, bins, 2 * points) along one axis, from edges (R,) in cells and the map's size (R,)."""
    length = (high - low).clamp(min=1)  # torchvision's: a region is at least a cell wide
    steps = (torch.arange(bins * points, device=low.device, dtype=low.dtype) + 0.5) / (bins * points)
    at = low.unsqueeze(1) + steps * length.unsqueeze(1)
    size = size.unsqueeze(1)
    inside = (at >= -1) & (at <= size)
    at = at.clamp(min=0)
    below = torch.minimum(at.long(), size - 1)
    above = torch.minimum(below + 1, size - 1)
    fraction = torch.where(below < size - 1, at - below, 0)
    cells = torch.stack([below, above], dim=2)
    weights = torch.stack([1 - fraction, fraction], dim=2) * (inside.unsqueeze(2).to(at.dtype) / points)
    return cells.view(-1, bins, 2 * points), weights.view(-1, bins, 2 * points)


def _outer(down: Tensor, across: Tensor, combine: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """(R, P, T) and (R, Q, U) to (R, P, Q, T, U)."""
    return combine(down[:, :, None, :, None], across[:, None, :, None, :])
