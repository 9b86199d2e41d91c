"""RoIAlign in plain torch: two small matrix products for each region and channel, and their transposes going back.

A weight of zero times a feature of NaN is NaN, so one such feature reaches every region of its image, where a kernel
that visits only the cells with weight would keep it to those that touch it.
"""

import torch
from torch import Tensor

MAP_NUMBERS = 2**24
"""Features gathered at a time, one map for each region."""


def matmul_align(features: Tensor, images: Tensor, row_weights: Tensor, column_weights: Tensor) -> Tensor:
    """Values (R, C, ph, pw) of features (N, C, H, W), images (R,) int64 and the weights of `align_weights`."""
    wide = row_weights.dtype
    out = [
        rows.unsqueeze(1) @ (features[image].to(wide) @ columns.unsqueeze(1).mT)
        for image, rows, columns in zip(
            *(x.split(_step(features.shape)) for x in (images, row_weights, column_weights)), strict=True
        )
    ]
    return torch.cat(out).to(features.dtype)


def matmul_spread(grad: Tensor, images: Tensor, row_weights: Tensor, column_weights: Tensor, size: list[int]) -> Tensor:
    """Gradient (N, C, H, W) of the features, from that of the values (R, C, ph, pw)."""
    out = row_weights.new_zeros(size)
    parts = (x.split(_step(size)) for x in (grad, images, row_weights, column_weights))
    for part, image, rows, columns in zip(*parts, strict=True):
        out.index_add_(0, image, rows.unsqueeze(1).mT @ part.to(out.dtype) @ columns.unsqueeze(1))
    return out.to(grad.dtype)


def _step(size: list[int] | torch.Size) -> int:
    """Regions at a time."""
    return max(1, MAP_NUMBERS // max(1, size[1] * size[2] * size[3]))
