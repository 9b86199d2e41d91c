# Completed and repaired: 001_roi_module.py as one would write it today, with the kernels that it imports. All of it is ours.
"""RoI max pooling in CUDA C, launched through CuPy: the module of the notes, whole.

What has changed: the Function is static and keeps what backward needs on `ctx`, a kernel is looked up at each launch in
a cache that knows the device, outputs are made where the input is, CuPy is told PyTorch's stream, and the kernels, which
the notes do not print, are this project's. They take the integer edges of `frcnn_lite.ops.roi_bins`. One thread computes
one number: of the pooled values going forward, of the features' gradient going back, where it collects what is its own
instead of adding to what is shared, so the sum is the same at every run.

    python 001_completed.py                     with CuPy and a GPU, or more of them
    python -m vgpu --gpus 2 001_completed.py    without: the kernels go through the C++ compiler, thread after thread
"""

import functools
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from frcnn_lite import ops

FORWARD = r"""
typedef long long Int;  // positions in a large batch do not fit into 32 bits

extern "C" __global__ void roi_pool(
    const Feature* features, const Int* images, const Int* rows, const Int* columns, Feature* values, Argmax* argmax,
    Feature lowest, Int channels, Int height, Int width, Int ph, Int pw, Int keep, Int total)
{
    Int index = blockIdx.x * (Int)blockDim.x + threadIdx.x;
    if (index >= total) return;
    Int j = index % pw, i = index / pw % ph, c = index / pw / ph % channels, r = index / pw / ph / channels;
    const Int* row = rows + (r * ph + i) * 2;
    const Int* column = columns + (r * pw + j) * 2;
    const Feature* plane = features + (images[r] * channels + c) * height * width;
    Feature best = row[0] < row[1] && column[0] < column[1] ? lowest : 0;
    Int where = -1;
    for (Int y = row[0]; y < row[1]; ++y)
        for (Int x = column[0]; x < column[1]; ++x)
            if (plane[y * width + x] > best) {
                where = y * width + x;
                best = plane[where];
            }
    values[index] = best;
    if (keep) argmax[index] = where;
}
"""
BACKWARD = r"""
extern "C" __global__ void roi_pool_backward(
    const Feature* grad, const Argmax* argmax, const Int* images, Feature* out,
    Int regions, Int channels, Int cells, Int bins, Int total)
{
    Int index = blockIdx.x * (Int)blockDim.x + threadIdx.x;
    if (index >= total) return;
    Int cell = index % cells, c = index / cells % channels, image = index / cells / channels;
    Feature sum = 0;
    for (Int r = 0; r < regions; ++r) {
        if (images[r] != image) continue;
        for (Int k = (r * channels + c) * bins; k < (r * channels + c + 1) * bins; ++k)
            if (argmax[k] == cell) sum += grad[k];
    }
    out[index] = sum;
}
"""
SOURCE = FORWARD + BACKWARD
ORDERED = True
"""Sums run in the same order at every run."""
C_TYPES = {torch.float32: "float", torch.float64: "double", torch.int16: "short", torch.int32: "int"}
THREADS = 1024  # of a block

Argument = Tensor | np.generic | int
Launch = Callable[[str, str, tuple[str, ...], int, Sequence[Argument]], None]
"""(source, name of the kernel, macros, threads, arguments): how a kernel is run. Tensors become pointers, numbers of
Python 64-bit integers."""


def block_count(threads: int) -> int:
    """Blocks that hold at least so many threads; those to spare in the last return at once."""
    return (threads + THREADS - 1) // THREADS


def launch_with_cupy(
    source: str, name: str, macros: tuple[str, ...], threads: int, arguments: Sequence[Argument]
) -> None:
    """Launch on the device of the tensors, on the stream that torch works on there."""
    import cupy

    device = next(x.device for x in arguments if isinstance(x, Tensor))
    passed = [np.uint64(x.data_ptr()) if isinstance(x, Tensor) else np.int64(x) if isinstance(x, int) else x
              for x in arguments]  # fmt: skip
    with cupy.cuda.Device(device.index), cupy.cuda.Stream.from_external(torch.cuda.current_stream(device)):
        _load(source, name, macros, device.index)((block_count(threads),), (THREADS,), passed)


@functools.cache  # with the device as a key: what the post's `cupy.util.memoize(for_each_device=True)` did
def _load(source: str, name: str, macros: tuple[str, ...], device: int) -> Callable[..., None]:
    import cupy

    return cupy.RawKernel(source, name, options=tuple(f"-D{macro}" for macro in macros))


def pool(
    features: Tensor,
    images: Tensor,
    rows: Tensor,
    columns: Tensor,
    argmax_bits: int = 32,
    launch: Launch = launch_with_cupy,
) -> tuple[Tensor, Tensor]:
    """Values and argmax (R, C, ph, pw) of integer bins, as the operator returns them."""
    given = features.dtype
    features = features.to(torch.promote_types(given, torch.float32)).contiguous()  # the kernel counts on row-major
    regions, ph, pw = rows.shape[0], rows.shape[1], columns.shape[1]
    values = features.new_empty(regions, features.shape[1], ph, pw)
    dtype = torch.int16 if argmax_bits == 16 else torch.int32
    argmax = values.new_empty(values.shape if argmax_bits else 0, dtype=dtype)
    if values.numel():
        bins = images.contiguous(), rows.contiguous(), columns.contiguous()
        lowest = max(torch.finfo(torch.float32).min, torch.finfo(given).min)
        lowest = np.float64(lowest).astype(str(features.dtype).removeprefix("torch."))
        sizes = *features.shape[1:], ph, pw, argmax_bits, values.numel()
        launch(SOURCE, "roi_pool", _macros(features, argmax), values.numel(),
               (features, *bins, values, argmax, lowest, *sizes))  # fmt: skip
    return values.to(given), argmax


def scatter(
    grad: Tensor,
    argmax: Tensor,
    images: Tensor,
    size: list[int],
    channels_last: bool = False,
    launch: Launch = launch_with_cupy,
) -> Tensor:
    """Gradient (N, C, H, W); each cell sums in order of region and bin."""
    given, (c, h, w) = grad.dtype, size[1:]
    grad = grad.to(torch.promote_types(given, torch.float32)).contiguous()
    out = grad.new_empty(size)
    if out.numel():
        sizes = grad.shape[0], c, h * w, grad.shape[2] * grad.shape[3], out.numel()
        launch(SOURCE, "roi_pool_backward", _macros(grad, argmax), out.numel(),
               (grad, argmax.contiguous(), images.contiguous(), out, *sizes))  # fmt: skip
    return out.to(given).contiguous(memory_format=torch.channels_last if channels_last else torch.contiguous_format)


def _macros(features: Tensor, argmax: Tensor) -> tuple[str, ...]:
    return f"Feature={C_TYPES[features.dtype]}", f"Argmax={C_TYPES[argmax.dtype]}"


# ---- the module ------------------------------------------------------------------------------------------------------


class RoI(Function):
    @staticmethod
    def forward(ctx, x, rois, outh, outw, spatial_scale, launch):
        images, rows, columns = ops.roi_bins(rois, x.shape[2:], outh, outw, spatial_scale)
        output, argmax = pool(x, images, rows, columns, launch=launch)
        ctx.save_for_backward(argmax, images)
        ctx.in_size, ctx.launch = x.shape, launch
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        argmax, images = ctx.saved_tensors
        grad_input = scatter(grad_output, argmax, images, list(ctx.in_size), launch=ctx.launch)
        return grad_input, None, None, None, None, None


class RoIPooling2D(nn.Module):
    """(N, C, H, W) features and (R, 5) regions, image and x1 y1 x2 y2 in pixels, to (R, C, outh, outw)."""

    def __init__(self, outh, outw, spatial_scale, launch=launch_with_cupy):
        super().__init__()
        self.outh, self.outw, self.spatial_scale, self.launch = outh, outw, spatial_scale, launch

    def forward(self, x, rois):
        return RoI.apply(x, rois, self.outh, self.outw, self.spatial_scale, self.launch)


def test_roi_module(launch=launch_with_cupy):
    """Its own test, against torchvision's operator on the CPU: boxes that are in order, weights that are not 1, two
    calls before one backward, a channels-last map, and every GPU while every GPU is current."""
    import torchvision

    draw = torch.Generator().manual_seed(0)
    B, N, C, H, W, PH, PW, spatial_scale = 2, 8, 4, 32, 32, 7, 7, 1 / 16
    x = torch.randn(B, C, H, W, generator=draw)
    corners = (torch.rand(N, 2, 2, generator=draw) * 512).sort(dim=1).values.flatten(1)
    rois = torch.cat([torch.arange(N)[:, None] * B // N, corners], dim=1)
    weights = torch.randn(N, C, PH, PW, generator=draw)

    def both_ways(pooling, x, rois, weights):
        x = x.clone().requires_grad_()  # `clone` keeps the order of the memory
        output, _ = pooling(x, rois), pooling(x, rois.flip(0))
        (output * weights).sum().backward()
        return output.detach().cpu(), x.grad.cpu()

    expected = both_ways(lambda x, rois: torchvision.ops.roi_pool(x, rois, (PH, PW), spatial_scale), x, rois, weights)
    module, devices = RoIPooling2D(PH, PW, spatial_scale, launch), range(torch.cuda.device_count())
    for current in devices:
        for home in devices:
            for form in (torch.contiguous_format, torch.channels_last):
                given = x.to(home).contiguous(memory_format=form), rois.to(home), weights.to(home)
                with torch.cuda.device(current):
                    found = both_ways(module, *given)
                for name, mine, theirs in zip(("forward", "backward"), found, expected):
                    assert torch.equal(mine, theirs), f"{name} on cuda:{home}, cuda:{current} current, {form}"
    return len(devices)


if __name__ == "__main__":
    try:
        import cupy  # noqa: F401

        launch = launch_with_cupy
        print("kernels launched by CuPy")
    except ImportError:
        from course.lessons.nb17.without_gpu import launch_with_compiler as launch

        print("no CuPy here: the kernels are compiled as C++, and their threads run one after the other")
    count = test_roi_module(launch)
    print(f"test pass: values and gradients are those of torchvision, on each of {count} GPUs while each was current")
