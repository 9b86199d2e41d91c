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
5. A bin that lies outside the map is empty: value 0, argmax -1, no gradient.

Where cell k stands for the pixels from k to k + 1 times the stride, a region that is read by rules 1 and 2 lies half a
cell to the right of its box and below it, on average, and is one cell larger each way. `roi_align` has the same half
cell, unless `aligned` is true. Weights learn to live with it, so it belongs to the rule.

This is the rule of Caffe's `ROIPooling` layer (R. Girshick, "Fast R-CNN", 2015) and of `torchvision.ops.roi_pool`.

Rules 1 to 3 are computed once, by `roi_bins` (compiled on the CPU); every kernel receives its integer bins: numba's on
the CPU, Triton's or CuPy's on CUDA, and plain torch wherever one of those is missing. `kernels/loops_roi_pool.py`
follows the rule in loops of its own, to compare with.
"""

from collections.abc import Callable
from types import ModuleType

import torch
from torch import Tensor

from frcnn_lite.ops.kernels import compiled
from frcnn_lite.ops.kernels.torch_roi_pool import feature_index, table_pool, table_scatter
from frcnn_lite.ops.roi_arguments import check_images, check_roi_arguments, in_format
from frcnn_lite.ops.roi_bins import roi_bins


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
    ph, pw = check_roi_arguments(features, rois, output_size)
    # Without a backward pass no argmax is kept; with one, two bytes do where they hold every position of the map.
    needs_argmax = torch.is_grad_enabled() and features.requires_grad
    bits = 0 if not needs_argmax else 16 if features.shape[2] * features.shape[3] < 2**15 else 32
    return torch.ops.frcnn_lite.roi_pool(features, rois, ph, pw, spatial_scale, bits)[0]


def roi_pool_with_argmax(
    features: Tensor, rois: Tensor, output_size: int | tuple[int, int], spatial_scale: float = 1.0
) -> tuple[Tensor, Tensor]:
    """`roi_pool`, and where in the map each value was found: `row * W + column` (R, C, ph, pw) int32, -1 for none."""
    ph, pw = check_roi_arguments(features, rois, output_size)
    return torch.ops.frcnn_lite.roi_pool(features, rois, ph, pw, spatial_scale, 32)


# ---- the operator ----------------------------------------------------------------------------------------------------
# Declared through the lower of torch.library's two interfaces: `custom_op` imports torch._dynamo at the first call,
# which takes a second or two.

torch.library.define(
    "frcnn_lite::roi_pool",
    "(Tensor features, Tensor rois, int ph, int pw, float spatial_scale, int argmax_bits=32)"
    " -> (Tensor values, Tensor argmax)",
)
torch.library.define(
    "frcnn_lite::roi_pool_backward",
    "(Tensor grad, Tensor argmax, Tensor images, SymInt[] size, bool channels_last) -> Tensor",
)


@torch.library.impl("frcnn_lite::roi_pool", "default")
def _(
    features: Tensor, rois: Tensor, ph: int, pw: int, spatial_scale: float, argmax_bits: int = 32
) -> tuple[Tensor, Tensor]:
    fast = compiled("roi_bins") if rois.device.type == "cpu" else None
    find_bins: Callable[..., tuple[Tensor, Tensor, Tensor]] = fast.bins if fast else roi_bins
    bins = find_bins(rois, features.shape[2:], ph, pw, spatial_scale)
    check_images(bins[0], features.shape[0])
    kernel = _kernel(features)
    return (kernel.pool if kernel else table_pool)(features, *bins, argmax_bits)


@torch.library.register_fake("frcnn_lite::roi_pool")
def _(
    features: Tensor, rois: Tensor, ph: int, pw: int, spatial_scale: float, argmax_bits: int = 32
) -> tuple[Tensor, Tensor]:
    shape = (rois.shape[0], features.shape[1], ph, pw)
    dtype = torch.int16 if argmax_bits == 16 else torch.int32
    return features.new_empty(shape), features.new_empty(shape if argmax_bits else 0, dtype=dtype)


@torch.library.impl("frcnn_lite::roi_pool_backward", "default")
def _(grad: Tensor, argmax: Tensor, images: Tensor, size: list[int], channels_last: bool) -> Tensor:
    kernel = _kernel(grad)
    if kernel:
        return kernel.scatter(grad, argmax, images, size, channels_last)
    return in_format(table_scatter(grad, argmax, images, size), channels_last)


@torch.library.register_fake("frcnn_lite::roi_pool_backward")
def _(grad: Tensor, argmax: Tensor, images: Tensor, size: list[int], channels_last: bool) -> Tensor:
    return in_format(grad.new_empty(size), channels_last)


def _kernel(tensor: Tensor) -> ModuleType | None:
    """The fastest kernels there are for the tensor's device, None for those in plain torch."""
    if tensor.device.type == "cpu":
        return compiled("roi_pool")
    if tensor.device.type == "cuda":
        return compiled("roi_pool", "triton") or compiled("roi_pool", "cupy")
    return None


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
        raise RuntimeError(
            "frcnn_lite::roi_pool was called with argmax_bits=0, which keeps nothing for a backward pass"
        )
    argmax, images = ctx.saved_tensors
    backward = torch.ops.frcnn_lite.roi_pool_backward
    return backward(grad, argmax, images, ctx.size, ctx.channels_last), None, None, None, None, None


torch.library.register_autograd("frcnn_lite::roi_pool", _backward, setup_context=_setup_context)


def _setup_double(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    _, argmax, images, ctx.size, _ = inputs
    ctx.save_for_backward(argmax, images)


def _double_backward(ctx, grad):  # type: ignore[no-untyped-def]
    """Pooling moves numbers and adds them, so the gradient of its gradient reads at the argmax what was added there."""
    argmax, images = ctx.saved_tensors
    read = grad.flatten()[feature_index(argmax, images, ctx.size)]
    return read.where(argmax >= 0, 0), None, None, None, None


torch.library.register_autograd("frcnn_lite::roi_pool_backward", _double_backward, setup_context=_setup_double)
