"""From regions in pixels to integer bins: rules 1 to 3 of RoI max pooling, which `roi_pool.py` states."""

import torch
from torch import Tensor


def roi_bins(
    rois: Tensor, map_size: tuple[int, int] | torch.Size, ph: int, pw: int, spatial_scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Rules 1 to 3: image indices (R,), row bins (R, ph, 2) and column bins (R, pw, 2), int64, as [start, end).

    Args:
        rois: (R, 5) float32 or float64, index of the image, then `xyxy` in pixels.
        map_size: (height, width) of the feature map in cells.
    """
    x1, y1, x2, y2 = round_half_away(rois[:, 1:] * spatial_scale).unbind(1)
    return rois[:, 0].long(), _bins(y1, y2, ph, map_size[0]), _bins(x1, x2, pw, map_size[1])


def round_half_away(x: Tensor) -> Tensor:
    """The nearest whole number, halves away from zero, as C's `round`; `torch.round` takes halves to the even one."""
    whole = torch.div(x, 1, rounding_mode="trunc")
    # x - whole is exact, whereas floor(x + 0.5) rounds the largest float below 0.5 up to 1.
    return whole + torch.sign(x) * ((x - whole).abs() >= 0.5)


def lowest_feature(dtype: torch.dtype) -> float:
    """Where the search of rule 4 starts: the lowest float32, in float64 too; the dtype's own where that is higher."""
    return max(torch.finfo(torch.float32).min, torch.finfo(dtype).min)


def _bins(first: Tensor, last: Tensor, count: int, limit: int) -> Tensor:
    size = (last - first + 1).clamp(min=1)
    # Divided by a tensor: by a Python number, CUDA multiplies with its reciprocal, which can differ in the last bit.
    size = size / torch.full_like(size, count)
    edges = torch.arange(count + 1, device=first.device, dtype=first.dtype) * size.unsqueeze(1)
    relative = torch.stack([floor(edges[:, :-1]), -floor(-edges[:, 1:])], dim=-1)
    # Clamped twice: a NaN passes the first, and is a negative number after it.
    return (relative + first.view(-1, 1, 1)).clamp(0, limit).long().clamp(min=0)


def floor(x: Tensor) -> Tensor:
    """`torch.floor` on one thread: that one, `ceil` and `trunc` call up all threads for 2048 numbers, for which a busy
    machine takes longer than for the pooling."""
    return torch.div(x, 1, rounding_mode="floor")
