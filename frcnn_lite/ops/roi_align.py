"""RoIAlign: the rule, one operator, its gradient (K. He et al., "Mask R-CNN", 2017; `torchvision.ops.roi_align`).

Nothing is rounded. A region is cut into ph x pw equal bins and each bin into a grid of points; the features are
interpolated bilinearly at the points, and the mean over a bin's points is its value. Rows and columns take part in this
independently, so with `row_weights` (R, ph, H) and `column_weights` (R, pw, W) of `align_weights`

    value[r, i, j] = sum over y, x of row_weights[r, i, y] * features[y, x] * column_weights[r, j, x]

which is linear in the features: its gradient is the same sum read the other way. On a GPU torchvision's operator
computes it, because it is the fastest form there; on the CPU the compiled form in the folder `kernels` beside this
file, and elsewhere `matmul_align`, which is plain torch. This file works without that folder, and without the rest of
this package.
"""

import functools
import importlib
from types import ModuleType

import torch
from torch import Tensor

NAMESPACE = __name__.partition(".")[0]
"""Of the operators below: the package's, or in a copy of this file the copy's own."""

MAP_NUMBERS = 2**24
"""Features that `matmul_align` gathers at a time, one map for each region."""


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
        sampling_ratio: points along each side of a bin; 0 or less for one a cell, rounded up.
        aligned: take the centre of the first cell as its coordinate 0.5, as pictures are drawn, not as 0. Without it
            everything is read half a cell to the right of the box and below it.

    Returns:
        (R, C, ph, pw) of the features' dtype, contiguous. Differentiable twice with respect to `features`.

    Raises:
        ValueError: a shape or dtype is not as above, or on the CPU an image index lies outside the batch.
    """
    ph, pw = _check(features, rois, output_size)
    return _OPERATORS.roi_align(features, rois, ph, pw, spatial_scale, sampling_ratio, aligned)


def _check(features: Tensor, rois: Tensor, output_size: int | tuple[int, int]) -> tuple[int, int]:
    """(ph, pw), if shapes and dtypes are as `roi_align` says; raises ValueError otherwise."""
    ph, pw = (output_size, output_size) if isinstance(output_size, int) else output_size
    if features.dim() != 4 or not features.is_floating_point():
        raise ValueError(f"`features` must be (N, C, H, W) floating, got {tuple(features.shape)} {features.dtype}")
    if rois.dim() != 2 or rois.shape[1] != 5 or rois.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"`rois` must be (R, 5) float32 or float64, got {tuple(rois.shape)} {rois.dtype}")
    if ph < 1 or pw < 1:
        raise ValueError(f"`output_size` must be positive, got {output_size}")
    return ph, pw


def align_weights(
    rois: Tensor,
    map_size: tuple[int, int] | torch.Size,
    ph: int,
    pw: int,
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """The weight of each row and column of the map in each bin's mean.

    Args:
        rois: (R, 5) float32 or float64, index of the image, then `xyxy` in pixels.
        map_size: (height, width) of the feature map in cells.
        ph: bins of a region, one above the other.
        pw: bins of a region, side by side.
        spatial_scale, sampling_ratio, aligned: those of `roi_align`.

    Returns:
        Image indices (R,) int64, weights of rows (R, ph, H) and of columns (R, pw, W).
    """
    x1, y1, x2, y2 = (rois[:, 1:] * spatial_scale - (0.5 if aligned else 0.0)).unbind(1)
    width, height = x2 - x1, y2 - y1
    if not aligned:  # as the first version had it: a region is at least one cell wide
        width, height = width.clamp(min=1), height.clamp(min=1)
    rows = _weights(y1, height, ph, map_size[0], sampling_ratio)
    return rois[:, 0].long(), rows, _weights(x1, width, pw, map_size[1], sampling_ratio)


def _weights(start: Tensor, extent: Tensor, count: int, cells: int, ratio: int) -> Tensor:
    """(R, count, cells): each point shares its weight, one over the number of points, between the cells beside it."""
    size = (extent / torch.full_like(extent, count)).view(-1, 1, 1)
    # Rounded up; `torch.ceil` calls up all threads, for which a busy machine takes longer than for the pooling.
    grid = torch.full_like(size, ratio) if ratio > 0 else -torch.div(-size, 1, rounding_mode="floor")
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


# ---- the sum in plain torch ------------------------------------------------------------------------------------------
# Two small matrix products for each region and channel, and their transposes going back. A weight of zero times a
# feature of NaN is NaN, so one such feature reaches every region of its image, where a kernel that visits only the
# cells with weight keeps it to those that touch it.


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


# ---- torchvision's operator, on a GPU --------------------------------------------------------------------------------

FAR = 2.0**22
"""Corners are cut to this many pixels on either side of the picture, and what is not a number becomes 0: torchvision
counts cells in 32 bits, and would read outside the map where they run over."""


def takes_regions(device: torch.device) -> bool:
    """Whether torchvision's operator computes: on a GPU, if torchvision has kernels for it.

    On an H200 they took 0.03 to 0.19 of the time of plain torch. Inside of an operator the tensors of a virtual GPU are
    what they are, CPU tensors, so virtual GPUs compute what the CPU does, to the bit.
    """
    return device.type == "cuda" and has_cuda_kernels()


@functools.cache
def has_cuda_kernels() -> bool:
    """Whether the torchvision that is installed was built for CUDA."""
    try:
        import torchvision  # noqa: F401, it registers its operators

        torch.library.get_kernel("torchvision::roi_align", "CUDA")
    except (ImportError, RuntimeError):
        return False
    return True


def region_align(features: Tensor, rois: Tensor, ph: int, pw: int, scale: float, ratio: int, aligned: bool) -> Tensor:
    """Values (R, C, ph, pw) of regions (R, 5), summed in float32 or higher."""
    wide = torch.promote_types(torch.promote_types(features.dtype, rois.dtype), torch.float32)
    bounded = rois.to(wide).clamp(-FAR, FAR).nan_to_num(0.0)
    align = torch.ops.torchvision.roi_align
    return align(features.to(wide), bounded, scale, ph, pw, ratio, aligned).to(features.dtype)


def region_spread(
    grad: Tensor, rois: Tensor, size: list[int], ph: int, pw: int, scale: float, ratio: int, aligned: bool
) -> Tensor:
    """Gradient (N, C, H, W) of the features, from that of the values (R, C, ph, pw), added in any order."""
    wide = torch.promote_types(torch.promote_types(grad.dtype, rois.dtype), torch.float32)
    bounded = rois.to(wide).clamp(-FAR, FAR).nan_to_num(0.0)
    spread = torch.ops.torchvision._roi_align_backward
    return spread(grad.to(wide), bounded, scale, ph, pw, *size, ratio, aligned).to(grad.dtype)


# ---- the operator ----------------------------------------------------------------------------------------------------

_OPERATORS = getattr(torch.ops, NAMESPACE)
_RULE = "int ph, int pw, float spatial_scale, int sampling_ratio, bool aligned"
torch.library.define(f"{NAMESPACE}::roi_align", f"(Tensor features, Tensor rois, {_RULE}) -> Tensor")
torch.library.define(
    f"{NAMESPACE}::roi_align_backward",
    f"(Tensor grad, Tensor rois, SymInt[] size, bool channels_last, {_RULE}) -> Tensor",
)


@torch.library.impl(f"{NAMESPACE}::roi_align", "default")
def _(features: Tensor, rois: Tensor, ph: int, pw: int, scale: float, ratio: int, aligned: bool) -> Tensor:
    if takes_regions(features.device):
        _check_images(rois[:, 0].long(), features.shape[0])
        with torch.autocast(features.device.type, enabled=False):
            return region_align(features, rois, ph, pw, scale, ratio, aligned)
    weights = _operator_weights(features.dtype, rois, features.shape, ph, pw, scale, ratio, aligned)
    kernel = _kernel(features)
    with torch.autocast(features.device.type, enabled=False):
        return (kernel.align if kernel else matmul_align)(features, *weights)


@torch.library.register_fake(f"{NAMESPACE}::roi_align")
def _(features: Tensor, rois: Tensor, ph: int, pw: int, scale: float, ratio: int, aligned: bool) -> Tensor:
    return features.new_empty(rois.shape[0], features.shape[1], ph, pw)


@torch.library.impl(f"{NAMESPACE}::roi_align_backward", "default")
def _(
    grad: Tensor, rois: Tensor, size: list[int], last: bool, ph: int, pw: int, scale: float, ratio: int, aligned: bool
) -> Tensor:
    if takes_regions(grad.device) and not torch.are_deterministic_algorithms_enabled():
        return _in_format(region_spread(grad, rois, size, ph, pw, scale, ratio, aligned), last)
    weights = _operator_weights(grad.dtype, rois, size, ph, pw, scale, ratio, aligned)
    kernel = _kernel(grad)
    if kernel:
        return kernel.spread(grad, *weights, size, last)
    with torch.autocast(grad.device.type, enabled=False):
        return _in_format(matmul_spread(grad, *weights, size), last)


@torch.library.register_fake(f"{NAMESPACE}::roi_align_backward")
def _(
    grad: Tensor, rois: Tensor, size: list[int], last: bool, ph: int, pw: int, scale: float, ratio: int, aligned: bool
) -> Tensor:
    return _in_format(grad.new_empty(size), last)


def _operator_weights(
    dtype: torch.dtype, rois: Tensor, size: list[int] | torch.Size, *rule: int | float | bool
) -> tuple[Tensor, Tensor, Tensor]:
    """`align_weights` in the dtype that the sum runs in."""
    images, rows, columns = align_weights(rois, (size[2], size[3]), *rule)  # type: ignore[arg-type]
    _check_images(images, size[0])
    wide = torch.promote_types(dtype, torch.float32)
    return images, rows.to(wide), columns.to(wide)


def _kernel(tensor: Tensor) -> ModuleType | None:
    """The compiled form for the tensor's device, None for plain torch."""
    return compiled("numba_roi_align") if tensor.device.type == "cpu" else None


@functools.cache
def compiled(name: str) -> ModuleType | None:
    """The file of that name in the folder `kernels` beside this one; None where it, or what it needs, is missing.

    Imported on first use: loading numba takes about half a second, which importing this file should not cost.
    """
    try:
        return importlib.import_module(f"{__package__}.kernels.{name}" if __package__ else f"kernels.{name}")
    except (ImportError, RuntimeError):  # RuntimeError: numba finds no folder that it may write its cache to
        return None


def _check_images(images: Tensor, count: int) -> None:
    """Raise for image indices (R,) outside the batch: kernels read memory at them, so a wrong one must not get there.

    Raises ValueError on the CPU. On a GPU, where reading the answer back would wait for the device, it is an assertion
    there.
    """
    inside = ((images >= 0) & (images < count)).all()
    if images.device.type != "cpu":
        torch._assert_async(inside)
    elif not inside:
        outside = images[(images < 0) | (images >= count)][0].item()
        raise ValueError(
            f"`rois[:, 0]` must be an image of this batch, 0 to {count - 1}, got {outside}; "
            "on a replica, images are counted from the first of its own chunk"
        )


def _in_format(tensor: Tensor, channels_last: bool) -> Tensor:
    """The tensor in channels-last or in contiguous memory. A gradient keeps the memory format of its input."""
    return tensor.contiguous(memory_format=torch.channels_last if channels_last else torch.contiguous_format)


# ---- gradients -------------------------------------------------------------------------------------------------------


def _setup_context(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    features, rois, *ctx.rule = inputs
    ctx.size = list(features.shape)
    ctx.channels_last = features.is_contiguous(memory_format=torch.channels_last)
    ctx.save_for_backward(rois)


def _backward(ctx, grad):  # type: ignore[no-untyped-def]
    (rois,) = ctx.saved_tensors
    backward = _OPERATORS.roi_align_backward
    return backward(grad, rois, ctx.size, ctx.channels_last, *ctx.rule), *[None] * 6


def _setup_double(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    _, rois, _, _, *ctx.rule = inputs
    ctx.save_for_backward(rois)


def _double_backward(ctx, grad):  # type: ignore[no-untyped-def]
    (rois,) = ctx.saved_tensors
    return _OPERATORS.roi_align(grad, rois, *ctx.rule), *[None] * 8


torch.library.register_autograd(f"{NAMESPACE}::roi_align", _backward, setup_context=_setup_context)
torch.library.register_autograd(f"{NAMESPACE}::roi_align_backward", _double_backward, setup_context=_setup_double)
