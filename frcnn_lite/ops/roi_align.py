"""RoIAlign: the rule, one operator, its gradient (K. He et al., "Mask R-CNN", 2017; `torchvision.ops.roi_align`).

Nothing is rounded. A region is cut into ph x pw equal bins and each bin into a grid of points; the features are
interpolated bilinearly at the points, and the mean over a bin's points is its value. Rows and columns take part in this
independently, so with `row_weights` (R, ph, H) and `column_weights` (R, pw, W) of `align_weights`

    value[r, i, j] = sum over y, x of row_weights[r, i, y] * features[y, x] * column_weights[r, j, x]

which is linear in the features: its gradient is the same sum read the other way.
"""

from types import ModuleType

import torch
from torch import Tensor

from frcnn_lite.ops.kernels import compiled
from frcnn_lite.ops.kernels.torch_roi_align import matmul_align, matmul_spread
from frcnn_lite.ops.roi_arguments import check_images, check_roi_arguments, in_format
from frcnn_lite.ops.roi_bins import floor


def roi_align(
    features: Tensor,
    rois: Tensor,
    output_size: int | tuple[int, int],
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = False,
) -> Tensor:
    """Mean of interpolated features in each of ph x pw bins of each region of interest.

    Args:
        features: (N, C, H, W) floating, contiguous or channels-last; finite. Halves are summed in float32.
        rois: (R, 5) float32 or float64: index of the image *within this batch*, then `xyxy` in image pixels.
        output_size: (ph, pw), or one number for both.
        spatial_scale: cells of the map per image pixel (1 / stride).
        sampling_ratio: points along each side of a bin; 0 or less for one a cell, rounded up, whose greatest number is
            read back from a GPU.
        aligned: take the centre of the first cell as its coordinate 0.5, as pictures are drawn, not as 0. Without it
            everything is read half a cell to the right of the box and below it.

    Returns:
        (R, C, ph, pw) of the features' dtype, contiguous. Differentiable twice with respect to `features`.

    Raises:
        ValueError: a shape or dtype is not as above, or on the CPU an image index lies outside the batch.
    """
    ph, pw = check_roi_arguments(features, rois, output_size)
    return torch.ops.frcnn_lite.roi_align(features, rois, ph, pw, spatial_scale, sampling_ratio, aligned)


def align_weights(
    rois: Tensor,
    map_size: tuple[int, int] | torch.Size,
    ph: int,
    pw: int,
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Image indices (R,) int64, and the weight of each row (R, ph, H) and column (R, pw, W) in each bin's mean."""
    x1, y1, x2, y2 = (rois[:, 1:] * spatial_scale - (0.5 if aligned else 0.0)).unbind(1)
    width, height = x2 - x1, y2 - y1
    if not aligned:  # as the first version had it: a region is at least one cell wide
        width, height = width.clamp(min=1), height.clamp(min=1)
    rows = _weights(y1, height, ph, map_size[0], sampling_ratio)
    return rois[:, 0].long(), rows, _weights(x1, width, pw, map_size[1], sampling_ratio)


def _weights(start: Tensor, extent: Tensor, count: int, cells: int, ratio: int) -> Tensor:
    """(R, count, cells): each point shares its weight, one over the number of points, between the cells beside it."""
    size = (extent / torch.full_like(extent, count)).view(-1, 1, 1)
    grid = torch.full_like(size, ratio) if ratio > 0 else -floor(-size)
    points = ratio if ratio > 0 else int(grid.nan_to_num(1, 1).max().clamp(min=1)) if grid.numel() else 1
    point = torch.arange(points, device=start.device, dtype=start.dtype)
    part = torch.arange(count, device=start.device, dtype=start.dtype).unsqueeze(1)
    at = start.view(-1, 1, 1) + part * size + (point + 0.5) * size / grid  # (R, count, points)
    counted = (point < grid) & (at >= -1) & (at <= cells)
    at = at.where(counted, 0).clamp(0, cells - 1)  # up to one cell outside, the cell at the edge is what there is
    index = at.long()
    share = at - index
    upper = share.where(counted, 0) / grid
    lower = (1 - share).where(counted, 0) / grid
    weights = start.new_zeros(*at.shape[:2], cells)
    return weights.scatter_add_(2, index, lower).scatter_add_(2, (index + 1).clamp(max=cells - 1), upper)


# ---- the operator ----------------------------------------------------------------------------------------------------

_RULE = "int ph, int pw, float spatial_scale, int sampling_ratio, bool aligned"
torch.library.define("frcnn_lite::roi_align", f"(Tensor features, Tensor rois, {_RULE}) -> Tensor")
torch.library.define(
    "frcnn_lite::roi_align_backward",
    f"(Tensor grad, Tensor rois, SymInt[] size, bool channels_last, {_RULE}) -> Tensor",
)


@torch.library.impl("frcnn_lite::roi_align", "default")
def _(features: Tensor, rois: Tensor, ph: int, pw: int, scale: float, ratio: int, aligned: bool) -> Tensor:
    weights = _operator_weights(features.dtype, rois, features.shape, ph, pw, scale, ratio, aligned)
    kernel = _kernel(features)
    with torch.autocast(features.device.type, enabled=False):
        return (kernel.align if kernel else matmul_align)(features, *weights)


@torch.library.register_fake("frcnn_lite::roi_align")
def _(features: Tensor, rois: Tensor, ph: int, pw: int, scale: float, ratio: int, aligned: bool) -> Tensor:
    return features.new_empty(rois.shape[0], features.shape[1], ph, pw)


@torch.library.impl("frcnn_lite::roi_align_backward", "default")
def _(
    grad: Tensor, rois: Tensor, size: list[int], last: bool, ph: int, pw: int, scale: float, ratio: int, aligned: bool
) -> Tensor:
    weights = _operator_weights(grad.dtype, rois, size, ph, pw, scale, ratio, aligned)
    kernel = _kernel(grad)
    if kernel:
        return kernel.spread(grad, *weights, size, last)
    with torch.autocast(grad.device.type, enabled=False):
        return in_format(matmul_spread(grad, *weights, size), last)


@torch.library.register_fake("frcnn_lite::roi_align_backward")
def _(
    grad: Tensor, rois: Tensor, size: list[int], last: bool, ph: int, pw: int, scale: float, ratio: int, aligned: bool
) -> Tensor:
    return in_format(grad.new_empty(size), last)


def _operator_weights(
    dtype: torch.dtype, rois: Tensor, size: list[int] | torch.Size, *rule: int | float | bool
) -> tuple[Tensor, Tensor, Tensor]:
    """`align_weights` in the dtype that the sum runs in."""
    images, rows, columns = align_weights(rois, (size[2], size[3]), *rule)  # type: ignore[arg-type]
    check_images(images, size[0])
    wide = torch.promote_types(dtype, torch.float32)
    return images, rows.to(wide), columns.to(wide)


def _kernel(tensor: Tensor) -> ModuleType | None:
    return compiled("roi_align") if tensor.device.type == "cpu" else None


# ---- gradients -------------------------------------------------------------------------------------------------------


def _setup_context(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    features, rois, *ctx.rule = inputs
    ctx.size = list(features.shape)
    ctx.channels_last = features.is_contiguous(memory_format=torch.channels_last)
    ctx.save_for_backward(rois)


def _backward(ctx, grad):  # type: ignore[no-untyped-def]
    (rois,) = ctx.saved_tensors
    backward = torch.ops.frcnn_lite.roi_align_backward
    return backward(grad, rois, ctx.size, ctx.channels_last, *ctx.rule), *[None] * 6


def _setup_double(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    _, rois, _, _, *ctx.rule = inputs
    ctx.save_for_backward(rois)


def _double_backward(ctx, grad):  # type: ignore[no-untyped-def]
    (rois,) = ctx.saved_tensors
    return torch.ops.frcnn_lite.roi_align(grad, rois, *ctx.rule), *[None] * 8


torch.library.register_autograd("frcnn_lite::roi_align", _backward, setup_context=_setup_context)
torch.library.register_autograd("frcnn_lite::roi_align_backward", _double_backward, setup_context=_setup_double)
