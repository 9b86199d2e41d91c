"""RoI max pooling: the rule, one operator, its gradient, and the choice among its kernels.

1. The corners of a region, times `spatial_scale`, are rounded to the nearest cell, halves away from zero.
2. Both corner cells belong to the region: its height is `y2 - y1 + 1` cells, and 1 where that is less than 1 (a region
   with swapped corners becomes one cell wide, at its first corner).
3. Bin i of P covers the rows from `floor(i * height / P)` to `ceil((i + 1) * height / P)`, the end excluded, relative
   to the region's first row and cut to the map. `height / P` is rounded to the rois' dtype before it is multiplied:
   in float32 the last of 7 bins over 57 rows ends at row 58, one beyond the region, and so it does in every kernel.
4. The value is the largest feature in the bin, and the argmax its flat position `row * W + column`; among equal
   features the first in row-major order wins. The search starts at the lowest finite float32 with argmax -1 and moves
   on to what is larger: NaN never wins, and a bin of nothing but NaN or -inf keeps the start.
5. A bin outside the map is empty: value 0, argmax -1, no gradient.

Where cell k means the pixels from k to k + 1 times the stride, a region that is read by rules 1 and 2 is half a
cell to the right of its box and below it, on average, and is one cell larger each way. `roi_align` has the same half
cell, unless `aligned` is true. Weights learn to live with it, so it belongs to the rule.

This is the rule of Caffe's `ROIPooling` layer (R. Girshick, "Fast R-CNN", 2015) and of `torchvision.ops.roi_pool`.

On a GPU torchvision's operator computes all five, because it is the fastest form there. Elsewhere rules 1 to 3 are
computed once, by `roi_bins`, and rules 4 and 5 by the compiled form in the folder `kernels` beside this file (numba on
the CPU; Triton for a GPU whose torchvision was built without CUDA), or else by torchvision's operator, a region a bin.
This file works without that folder, and without the rest of this package.
"""

import functools
import importlib
from types import ModuleType

import torch
from torch import Tensor

NAMESPACE = __name__.partition(".")[0]
"""Of the operators below: the package's, or in a copy of this file the copy's own."""


def roi_pool(features: Tensor, rois: Tensor, output_size: int | tuple[int, int], spatial_scale: float = 1.0) -> Tensor:
    """Largest feature in each of ph x pw bins of each region of interest.

    Args:
        features: (N, C, H, W) floating, contiguous or channels-last. Halves are compared as they are, gradients summed
            in float32.
        rois: (R, 5) float32 or float64: index of the image *within this batch*, then `xyxy` in image pixels. Bins are
            computed in this dtype.
        output_size: (ph, pw), or one number for both.
        spatial_scale: cells of the map per image pixel (1 / stride).

    Returns:
        (R, C, ph, pw) of the features' dtype, contiguous. Differentiable twice with respect to `features`.

    Raises:
        ValueError: a shape or dtype is not as above; on the CPU also an image index outside the batch, which on a GPU
            is a device-side assertion, as reading it back would wait for the device.
    """
    ph, pw = _check(features, rois, output_size)
    # Without a backward pass no argmax is kept; with one, two bytes do where they hold every position of the map.
    needs_argmax = torch.is_grad_enabled() and features.requires_grad
    bits = 0 if not needs_argmax else 16 if features.shape[2] * features.shape[3] < 2**15 else 32
    return _OPERATORS.roi_pool(features, rois, ph, pw, spatial_scale, bits)[0]


def roi_pool_with_argmax(
    features: Tensor, rois: Tensor, output_size: int | tuple[int, int], spatial_scale: float = 1.0
) -> tuple[Tensor, Tensor]:
    """`roi_pool`, and where in the map each value was found.

    Args:
        features, rois, output_size, spatial_scale: those of `roi_pool`.

    Returns:
        Values (R, C, ph, pw), and for each its `row * W + column`, (R, C, ph, pw) int32, -1 where a bin is empty.

    Raises:
        ValueError: as `roi_pool`.
    """
    ph, pw = _check(features, rois, output_size)
    return _OPERATORS.roi_pool(features, rois, ph, pw, spatial_scale, 32)


def _check(features: Tensor, rois: Tensor, output_size: int | tuple[int, int]) -> tuple[int, int]:
    """(ph, pw), if shapes and dtypes are as `roi_pool` says; raises ValueError otherwise."""
    ph, pw = (output_size, output_size) if isinstance(output_size, int) else output_size
    if features.dim() != 4 or not features.is_floating_point():
        raise ValueError(f"`features` must be (N, C, H, W) floating, got {tuple(features.shape)} {features.dtype}")
    if rois.dim() != 2 or rois.shape[1] != 5 or rois.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"`rois` must be (R, 5) float32 or float64, got {tuple(rois.shape)} {rois.dtype}")
    if ph < 1 or pw < 1:
        raise ValueError(f"`output_size` must be positive, got {output_size}")
    return ph, pw


# ---- rules 1 to 3 ----------------------------------------------------------------------------------------------------


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


def _bins(first: Tensor, last: Tensor, count: int, limit: int) -> Tensor:
    size = (last - first + 1).clamp(min=1)
    # Divided by a tensor: by a Python number, CUDA multiplies with its reciprocal, which can differ in the last bit.
    size = size / torch.full_like(size, count)
    edges = torch.arange(count + 1, device=first.device, dtype=first.dtype) * size.unsqueeze(1)
    relative = torch.stack([_floor(edges[:, :-1]), -_floor(-edges[:, 1:])], dim=-1)
    # Clamped twice: a NaN passes the first, and is a negative number after it.
    return (relative + first.view(-1, 1, 1)).clamp(0, limit).long().clamp(min=0)


def _floor(x: Tensor) -> Tensor:
    """`torch.floor` on one thread: that one, `ceil` and `trunc` call up all threads for 2048 numbers, for which a busy
    machine takes longer than for the pooling."""
    return torch.div(x, 1, rounding_mode="floor")


# ---- rules 4 and 5, and the gradient, without a compiled form --------------------------------------------------------


def vision_pool(
    features: Tensor, images: Tensor, rows: Tensor, columns: Tensor, argmax_bits: int = 32
) -> tuple[Tensor, Tensor]:
    """Values and argmax (R, C, ph, pw) of integer bins by torchvision's operator, as the operator below returns them.

    torchvision takes regions, so each bin becomes a region of one bin with whole corners, at which rules 1 to 3 change
    nothing: they are computed in one place, and in the rois' dtype whatever the features' is.

    Args:
        features: (N, C, H, W).
        images: (R,) int64 of `roi_bins`.
        rows: (R, ph, 2) int64 of `roi_bins`.
        columns: (R, pw, 2) int64 of `roi_bins`.
        argmax_bits: 32, 16, or 0 for no argmax.
    """
    import torchvision  # noqa: F401, it registers its operators

    shape = rows.shape[0], rows.shape[1], columns.shape[1]
    (top, bottom), (left, right) = rows.unsqueeze(2).unbind(3), columns.unsqueeze(1).unbind(3)
    corners = (images.view(-1, 1, 1), left, top, right - 1, bottom - 1)
    regions = torch.stack([x.expand(shape) for x in corners], dim=3).flatten(0, 2)
    wide = features.to(torch.promote_types(features.dtype, torch.float32))  # exact, and so is the way back
    found = torch.ops.torchvision.roi_pool(wide, regions.to(wide.dtype), 1.0, 1, 1)
    values, argmax = (x.view(*shape, features.shape[1]).permute(0, 3, 1, 2).contiguous() for x in found)
    filled = ((top < bottom) & (left < right)).unsqueeze(1)
    # Rule 4 in half precision: its lowest number is above float32's, with which torchvision starts.
    lowest = max(torch.finfo(torch.float32).min, torch.finfo(features.dtype).min)
    argmax = argmax.where(filled & (values > lowest), -1)
    values = values.clamp(min=lowest).where(filled, 0).to(features.dtype)
    if argmax_bits == 0:
        return values, argmax.new_empty(0)
    return values, argmax.to(torch.int16 if argmax_bits == 16 else torch.int32)


def plain_scatter(grad: Tensor, argmax: Tensor, images: Tensor, size: list[int]) -> Tensor:
    """Add the gradient of each value (R, C, ph, pw) to the feature at its argmax; returns (N, C, H, W)."""
    n, c, h, w = size
    flat = feature_index(argmax, images, size)
    # bfloat16 has no bits to sum a hundred regions in.
    added = grad.where(argmax >= 0, 0).to(torch.promote_types(grad.dtype, torch.float32))
    out = added.new_zeros(n * c * h * w).index_add_(0, flat.flatten(), added.flatten())
    return out.view(n, c, h, w).to(grad.dtype)


def feature_index(argmax: Tensor, images: Tensor, size: list[int]) -> Tensor:
    """Position in the flattened (N, C, H, W) features of each argmax, int64; 0 where the bin is empty, as selecting
    the others would need a shape that depends on the data."""
    _, c, h, w = size
    planes = images.view(-1, 1, 1, 1) * c + torch.arange(c, device=argmax.device).view(-1, 1, 1)
    return torch.where(argmax >= 0, planes * (h * w) + argmax, 0)


# ---- all five rules by torchvision's operator, on a GPU --------------------------------------------------------------

FAR = 2.0**22
"""Corners are cut to this many pixels on either side of the picture, and what is not a number becomes 0: torchvision
counts cells in 32 bits, and would read outside the map where they run over."""


def takes_regions(device: torch.device) -> bool:
    """Whether torchvision's operator gets the regions as they are: on a GPU, if torchvision has kernels for it.

    On an H200 its kernels took 0.07 to 0.42 of the time of `roi_bins` with the Triton form. Inside of an operator the
    tensors of a virtual GPU are what they are, CPU tensors, so virtual GPUs compute what the CPU does, to the bit.
    """
    return device.type == "cuda" and has_cuda_kernels()


@functools.cache
def has_cuda_kernels() -> bool:
    """Whether the torchvision that is installed was built for CUDA."""
    try:
        import torchvision  # noqa: F401, it registers its operators

        torch.library.get_kernel("torchvision::roi_pool", "CUDA")
    except (ImportError, RuntimeError):
        return False
    return True


def region_pool(
    features: Tensor, rois: Tensor, ph: int, pw: int, spatial_scale: float, argmax_bits: int = 32
) -> tuple[Tensor, Tensor]:
    """Values and argmax (R, C, ph, pw) of regions (R, 5) of the features' dtype, or of float32 with halves."""
    wide = features.to(rois.dtype)  # exact, and so is the way back
    bounded = rois.clamp(-FAR, FAR).nan_to_num(0.0)
    values, argmax = torch.ops.torchvision.roi_pool(wide, bounded, spatial_scale, ph, pw)
    if wide.dtype != features.dtype:  # rule 4 in half precision, as in `vision_pool`
        lowest = max(torch.finfo(torch.float32).min, torch.finfo(features.dtype).min)
        argmax = argmax.where(values > lowest, -1)
        values = values.clamp(min=lowest).to(features.dtype)
    if argmax_bits == 0:
        return values, argmax.new_empty(0)
    return values, argmax.to(torch.int16 if argmax_bits == 16 else torch.int32)


def region_scatter(grad: Tensor, argmax: Tensor, images: Tensor, size: list[int]) -> Tensor:
    """`plain_scatter` by torchvision's operator, which adds in any order, in float32 or higher."""
    wide = grad.to(torch.promote_types(grad.dtype, torch.float32))
    regions = images.to(wide.dtype).unsqueeze(1).expand(-1, 5).contiguous()  # the first column alone is read
    backward = torch.ops.torchvision._roi_pool_backward
    return backward(wide, regions, argmax.int(), 1.0, grad.shape[2], grad.shape[3], *size).to(grad.dtype)


# ---- the operator ----------------------------------------------------------------------------------------------------
# Declared through the lower of torch.library's two interfaces: `custom_op` imports torch._dynamo at the first call,
# which takes a second or two.

_OPERATORS = getattr(torch.ops, NAMESPACE)
torch.library.define(
    f"{NAMESPACE}::roi_pool",
    "(Tensor features, Tensor rois, int ph, int pw, float spatial_scale, int argmax_bits=32)"
    " -> (Tensor values, Tensor argmax)",
)
torch.library.define(
    f"{NAMESPACE}::roi_pool_backward",
    "(Tensor grad, Tensor argmax, Tensor images, SymInt[] size, bool channels_last) -> Tensor",
)


@torch.library.impl(f"{NAMESPACE}::roi_pool", "default")
def _(
    features: Tensor, rois: Tensor, ph: int, pw: int, spatial_scale: float, argmax_bits: int = 32
) -> tuple[Tensor, Tensor]:
    if takes_regions(features.device) and rois.dtype == torch.promote_types(features.dtype, torch.float32):
        _check_images(rois[:, 0].long(), features.shape[0])
        return region_pool(features, rois, ph, pw, spatial_scale, argmax_bits)
    bins = roi_bins(rois, features.shape[2:], ph, pw, spatial_scale)
    _check_images(bins[0], features.shape[0])
    kernel = _kernel(features)
    return (kernel.pool if kernel else vision_pool)(features, *bins, argmax_bits)


@torch.library.register_fake(f"{NAMESPACE}::roi_pool")
def _(
    features: Tensor, rois: Tensor, ph: int, pw: int, spatial_scale: float, argmax_bits: int = 32
) -> tuple[Tensor, Tensor]:
    shape = (rois.shape[0], features.shape[1], ph, pw)
    dtype = torch.int16 if argmax_bits == 16 else torch.int32
    return features.new_empty(shape), features.new_empty(shape if argmax_bits else 0, dtype=dtype)


@torch.library.impl(f"{NAMESPACE}::roi_pool_backward", "default")
def _(grad: Tensor, argmax: Tensor, images: Tensor, size: list[int], channels_last: bool) -> Tensor:
    kernel, any_order = _kernel(grad), not torch.are_deterministic_algorithms_enabled()
    if takes_regions(grad.device) and any_order:
        return _in_format(region_scatter(grad, argmax, images, size), channels_last)
    if kernel and (kernel.ORDERED or any_order):
        return kernel.scatter(grad, argmax, images, size, channels_last)
    return _in_format(plain_scatter(grad, argmax, images, size), channels_last)


@torch.library.register_fake(f"{NAMESPACE}::roi_pool_backward")
def _(grad: Tensor, argmax: Tensor, images: Tensor, size: list[int], channels_last: bool) -> Tensor:
    return _in_format(grad.new_empty(size), channels_last)


def _kernel(tensor: Tensor) -> ModuleType | None:
    """The fastest compiled form there is for the tensor's device, None for torchvision's."""
    if tensor.device.type == "cpu":
        return compiled("numba_roi_pool")
    if tensor.device.type == "cuda":
        return compiled("triton_roi_pool")
    return None


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
    features, rois = inputs[:2]
    ctx.size = list(features.shape)
    ctx.channels_last = features.is_contiguous(memory_format=torch.channels_last)
    ctx.has_argmax = inputs[5] != 0
    ctx.save_for_backward(output[1], rois[:, 0].long())
    ctx.mark_non_differentiable(output[1])


def _backward(ctx, grad, _grad_argmax):  # type: ignore[no-untyped-def]
    if not ctx.has_argmax:
        raise RuntimeError("roi_pool was called with `argmax_bits=0`, which keeps nothing for a backward pass")
    argmax, images = ctx.saved_tensors
    backward = _OPERATORS.roi_pool_backward
    return backward(grad, argmax, images, ctx.size, ctx.channels_last), None, None, None, None, None


torch.library.register_autograd(f"{NAMESPACE}::roi_pool", _backward, setup_context=_setup_context)


def _setup_double(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    _, argmax, images, ctx.size, _ = inputs
    ctx.save_for_backward(argmax, images)


def _double_backward(ctx, grad):  # type: ignore[no-untyped-def]
    """Pooling moves numbers and adds them, so the gradient of its gradient reads at the argmax what was added there."""
    argmax, images = ctx.saved_tensors
    read = grad.flatten()[feature_index(argmax, images, ctx.size)]
    return read.where(argmax >= 0, 0), None, None, None, None


torch.library.register_autograd(f"{NAMESPACE}::roi_pool_backward", _double_backward, setup_context=_setup_double)
