"""RoI max pooling in CUDA C, launched through CuPy in the manner of simple-faster-rcnn-pytorch's first version.

One thread computes one number: of the pooled values going forward, of the features' gradient going back, where it
collects what is its own instead of adding to what is shared, so the sum is the same at every run. The library does not
use it: on a GPU its RoI pooling takes Triton's form, or torchvision's operator where there is no Triton.
"""

import functools
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

SOURCE = r"""
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
