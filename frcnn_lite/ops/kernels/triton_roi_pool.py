"""RoI max pooling in Triton: one program for a bin and a block of channels.

Features are read with the channels innermost, so that the loads of a program are consecutive. Compiled at the first
call for the GPU that holds the tensors; Triton's interpreter runs the same source on the CPU.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

ORDERED = False
"""Atomic additions come in any order."""


@triton.jit
def _pool(  # type: ignore[no-untyped-def]
    features, images, rows, columns, values, argmax, lowest, channels, height, width, ph, pw,
    BLOCK: tl.constexpr, WIDE: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    bin, c = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    r, i, j = bin // (ph * pw), bin // pw % ph, bin % pw
    row, column = rows + (r * ph + i) * 2, columns + (r * pw + j) * 2
    top, bottom, left, right = tl.load(row), tl.load(row + 1), tl.load(column), tl.load(column + 1)
    plane = features + tl.load(images + r) * height * width * channels + c
    filled = (top < bottom) & (left < right)
    best = tl.full([BLOCK], 0, WIDE)
    best = tl.where(filled, best + lowest, best)
    where = tl.full([BLOCK], -1, tl.int32)
    for y in range(top, bottom):
        for x in range(left, right):
            position = y * width + x
            cell = tl.load(plane + position * channels, mask=c < channels).to(WIDE)
            where = tl.where(cell > best, position.to(tl.int32), where)
            best = tl.where(cell > best, cell, best)
    place = (r * channels + c) * ph * pw + i * pw + j
    tl.store(values + place, best.to(values.dtype.element_ty), mask=c < channels)
    if KEEP:
        tl.store(argmax + place, where.to(argmax.dtype.element_ty), mask=c < channels)


@triton.jit
def _scatter(grad, argmax, images, out, channels, cells, bins, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    region, k = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = k < channels * bins
    where = tl.load(argmax + region * channels * bins + k, mask=inside, other=-1).to(tl.int64)
    added = tl.load(grad + region * channels * bins + k, mask=inside, other=0).to(out.dtype.element_ty)
    plane = out + (tl.load(images + region) * channels + k // bins) * cells
    tl.atomic_add(plane + where, added, mask=inside & (where >= 0), sem="relaxed")


def pool(
    features: Tensor, images: Tensor, rows: Tensor, columns: Tensor, argmax_bits: int = 32
) -> tuple[Tensor, Tensor]:
    """Values and argmax (R, C, ph, pw) of integer bins, as the operator returns them."""
    c, h, w = features.shape[1:]
    regions, ph, pw = rows.shape[0], rows.shape[1], columns.shape[1]
    values = features.new_empty(regions, c, ph, pw)
    argmax = values.new_empty(
        values.shape if argmax_bits else 0, dtype=torch.int16 if argmax_bits == 16 else torch.int32
    )
    last = features.permute(0, 2, 3, 1).contiguous()
    block, wide = min(256, triton.next_power_of_2(c)), tl.float64 if features.dtype == torch.float64 else tl.float32
    lowest = max(torch.finfo(torch.float32).min, torch.finfo(features.dtype).min)
    with torch.cuda.device_of(features):  # Triton launches on the current device, whatever its arguments lie on
        if values.numel():
            _pool[regions * ph * pw, triton.cdiv(c, block)](
                last, images, rows.contiguous(), columns.contiguous(), values, argmax, lowest,
                c, h, w, ph, pw, BLOCK=block, WIDE=wide, KEEP=argmax_bits > 0,
            )  # fmt: skip
    return values, argmax


def scatter(grad: Tensor, argmax: Tensor, images: Tensor, size: list[int], channels_last: bool = False) -> Tensor:
    """Gradient (N, C, H, W), summed by atomic additions, in float32 or higher.

    Their order differs from run to run, and with it the last bit.
    """
    form = torch.channels_last if channels_last else torch.contiguous_format
    out = grad.new_zeros(size, dtype=torch.promote_types(grad.dtype, torch.float32))
    bins = grad.shape[2] * grad.shape[3]
    block = 1024
    with torch.cuda.device_of(grad):
        if grad.numel():
            _scatter[grad.shape[0], triton.cdiv(grad.shape[1] * bins, block)](
                grad.contiguous(), argmax, images, out, size[1], size[2] * size[3], bins, BLOCK=block
            )
    return out.to(grad.dtype).contiguous(memory_format=form)
