"""RoI max pooling: the operator, its gradient, and the rule that every kernel follows.

Kernels receive the integer bins that `roi_bins` computes, so the rule is written once, here:

1. The corners of a region, times `spatial_scale`, are rounded to the nearest cell, halves away from zero.
2. Both corner cells belong to the region: its height is `y2 - y1 + 1` cells, and 1 where that is less than 1 (a region
   with swapped corners becomes one cell wide, at its first corner).
3. Bin i of P covers the rows from `floor(i * height / P)` to `ceil((i + 1) * height / P)`, the end excluded, relative
   to the region's first row and cut to the map. `height / P` is rounded to the features' dtype before it is multiplied:
   in float32 the last of 7 bins over 57 rows ends at row 58, one beyond the region, and so it does in every kernel.
4. The value is the largest feature in the bin, and the argmax its flat position `row * W + column`; among equal
   features the first in row-major order wins.
5. A bin that lies outside the map is empty: value 0, argmax -1, no gradient.

This is the rule of Caffe's `ROIPooling` layer (R. Girshick, "Fast R-CNN", 2015) and of `torchvision.ops.roi_pool`.
"""

import torch
from torch import Tensor

from frcnn_lite.ops.kernels import compiled


def roi_pool(features: Tensor, rois: Tensor, output_size: int | tuple[int, int], spatial_scale: float = 1.0) -> Tensor:
    """Largest feature in each of ph x pw bins of each region of interest.

    Args:
        features: (N, C, H, W) float32 or float64, in any memory format.
        rois: (R, 5) of the same dtype: index of the image *within this batch*, then `xyxy` in image pixels.
        output_size: (ph, pw), or one number for both.
        spatial_scale: cells of the map per image pixel (1 / stride).

    Returns:
        (R, C, ph, pw), contiguous. Differentiable with respect to `features`.

    Raises:
        ValueError: a shape or dtype is not as above. Image indices are not read back from the device to be checked.
    """
    ph, pw = (output_size, output_size) if isinstance(output_size, int) else output_size
    if features.dim() != 4 or features.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"features must be (N, C, H, W) float32 or float64, got {_describe(features)}")
    if rois.dim() != 2 or rois.shape[1] != 5 or rois.dtype != features.dtype:
        raise ValueError(f"rois must be (R, 5) {features.dtype} like the features, got {_describe(rois)}")
    if ph < 1 or pw < 1:
        raise ValueError(f"output_size must be positive, got {output_size}")
    return torch.ops.frcnn_lite.roi_pool(features, rois, ph, pw, spatial_scale)[0]


def _describe(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)} {tensor.dtype}"


# ---- the operator ----------------------------------------------------------------------------------------------------
# Declared through the lower of torch.library's two interfaces: `custom_op` imports torch._dynamo at the first call,
# which takes a second or two.

torch.library.define(
    "frcnn_lite::roi_pool",
    "(Tensor features, Tensor rois, int ph, int pw, float spatial_scale) -> (Tensor values, Tensor argmax)",
)
torch.library.define(
    "frcnn_lite::roi_pool_backward",
    "(Tensor grad, Tensor argmax, Tensor images, int[] size, bool channels_last) -> Tensor",
)


@torch.library.impl("frcnn_lite::roi_pool", "default")
def _(features: Tensor, rois: Tensor, ph: int, pw: int, spatial_scale: float) -> tuple[Tensor, Tensor]:
    return _pool(features, *roi_bins(rois, features.shape[2:], ph, pw, spatial_scale))


@torch.library.impl("frcnn_lite::roi_pool", "cpu")
def _(features: Tensor, rois: Tensor, ph: int, pw: int, spatial_scale: float) -> tuple[Tensor, Tensor]:
    kernel = compiled("roi_pool")
    pool = _pool if kernel is None else kernel.pool
    return pool(features, *roi_bins(rois, features.shape[2:], ph, pw, spatial_scale))


@torch.library.register_fake("frcnn_lite::roi_pool")
def _(features: Tensor, rois: Tensor, ph: int, pw: int, spatial_scale: float) -> tuple[Tensor, Tensor]:
    shape = (rois.shape[0], features.shape[1], ph, pw)
    return features.new_empty(shape), features.new_empty(shape, dtype=torch.int32)


@torch.library.impl("frcnn_lite::roi_pool_backward", "default")
def _(grad: Tensor, argmax: Tensor, images: Tensor, size: list[int], channels_last: bool) -> Tensor:
    return _in_format(_scatter(grad, argmax, images, size), channels_last)


@torch.library.impl("frcnn_lite::roi_pool_backward", "cpu")
def _(grad: Tensor, argmax: Tensor, images: Tensor, size: list[int], channels_last: bool) -> Tensor:
    kernel = compiled("roi_pool")
    scatter = _scatter if kernel is None else kernel.scatter
    return _in_format(scatter(grad, argmax, images, size), channels_last)


@torch.library.register_fake("frcnn_lite::roi_pool_backward")
def _(grad: Tensor, argmax: Tensor, images: Tensor, size: list[int], channels_last: bool) -> Tensor:
    return _in_format(grad.new_empty(size), channels_last)


def _in_format(tensor: Tensor, channels_last: bool) -> Tensor:
    return tensor.contiguous(memory_format=torch.channels_last if channels_last else torch.contiguous_format)


def _setup_context(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    features, rois = inputs[:2]
    ctx.size = list(features.shape)
    ctx.channels_last = features.is_contiguous(memory_format=torch.channels_last)
    ctx.save_for_backward(output[1], rois[:, 0].long())
    ctx.mark_non_differentiable(output[1])


def _backward(ctx, grad, _grad_argmax):  # type: ignore[no-untyped-def]
    argmax, images = ctx.saved_tensors
    backward = torch.ops.frcnn_lite.roi_pool_backward
    return backward(grad, argmax, images, ctx.size, ctx.channels_last), None, None, None, None


torch.library.register_autograd("frcnn_lite::roi_pool", _backward, setup_context=_setup_context)


# ---- the rule, and the pooling in plain torch ------------------------------------------------------------------------


def roi_bins(
    rois: Tensor, map_size: tuple[int, int] | torch.Size, ph: int, pw: int, spatial_scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Rules 1 to 3: image indices (R,), row bins (R, ph, 2) and column bins (R, pw, 2), int64, as [start, end)."""
    x1, y1, x2, y2 = _round_half_away(rois[:, 1:] * spatial_scale).unbind(1)
    return rois[:, 0].long(), _bins(y1, y2, ph, map_size[0]), _bins(x1, x2, pw, map_size[1])


def _round_half_away(x: Tensor) -> Tensor:
    whole = torch.trunc(x)
    # x - whole is exact, whereas floor(x + 0.5) rounds the largest float below 0.5 up to 1.
    return whole + torch.sign(x) * ((x - whole).abs() >= 0.5)


def _bins(first: Tensor, last: Tensor, count: int, limit: int) -> Tensor:
    size = (last - first + 1).clamp(min=1)
    # Divided by a tensor: by a Python number, CUDA multiplies with its reciprocal, which can differ in the last bit.
    size = size / torch.full_like(size, count)
    edges = torch.arange(count + 1, device=first.device, dtype=first.dtype) * size.unsqueeze(1)
    relative = torch.stack([edges[:, :-1].floor(), edges[:, 1:].ceil()], dim=-1)
    return (relative + first.view(-1, 1, 1)).clamp(0, limit).long()


def _pool(features: Tensor, images: Tensor, rows: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """Rules 4 and 5: the largest in each row of the bin's columns first, then the largest of the bin's rows.

    Both steps take the first of equals, which together is the first in row-major order. Regions are taken a few at a
    time, as the masked maps of one region have the size of the feature map times pw.
    """
    ph, pw, c = rows.shape[1], columns.shape[1], features.shape[1]
    values = features.new_zeros(rows.shape[0], c, ph, pw)
    argmax = torch.full_like(values, -1, dtype=torch.int32)
    step = max(1, 2**24 // max(1, pw * features[0].numel()))
    for start in range(0, rows.shape[0], step):
        chosen = slice(start, start + step)
        values[chosen], argmax[chosen] = _pool_part(features[images[chosen]], rows[chosen], columns[chosen])
    return values, argmax


def _pool_part(maps: Tensor, rows: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """`_pool` for one map (C, H, W) a region: maps (R, C, H, W), rows (R, ph, 2), columns (R, pw, 2)."""
    height, width = maps.shape[2:]
    in_columns = _membership(columns, width)[:, None, None]  # (R, 1, 1, pw, W)
    best, column = maps.unsqueeze(3).masked_fill(~in_columns, -torch.inf).max(dim=-1)  # (R, C, H, pw)
    in_rows = _membership(rows, height)[:, None, :, :, None]  # (R, 1, ph, H, 1)
    best, row = best.unsqueeze(2).masked_fill(~in_rows, -torch.inf).max(dim=3)  # (R, C, ph, pw)
    argmax = row * width + column.gather(2, row)
    filled = (rows[..., 1] > rows[..., 0])[:, None, :, None] & (columns[..., 1] > columns[..., 0])[:, None, None, :]
    return torch.where(filled, best, 0), torch.where(filled, argmax, -1).to(torch.int32)


def _membership(bins: Tensor, length: int) -> Tensor:
    """(R, P, length) bool: which cells lie in which bin."""
    cells = torch.arange(length, device=bins.device)
    return (cells >= bins[..., :1]) & (cells < bins[..., 1:])


def _scatter(grad: Tensor, argmax: Tensor, images: Tensor, size: list[int]) -> Tensor:
    """Add each value's gradient to the feature at its argmax; returns (N, C, H, W)."""
    n, c, h, w = size
    planes = images.view(-1, 1, 1, 1) * c + torch.arange(c, device=grad.device).view(-1, 1, 1)
    # An empty bin adds zero to cell 0: selecting the filled bins instead would need a shape that depends on the data.
    flat = planes * (h * w) + argmax.clamp(min=0)
    added = torch.where(argmax >= 0, grad, 0)
    return grad.new_zeros(n * c * h * w).index_add_(0, flat.flatten(), added.flatten()).view(n, c, h, w)
