"""Convolution in three steps anyone can write: unfold the image into columns, multiply by the filters, fold back.

The columns are the "feature matrix" and the weights the "filter matrix" of Yangqing Jia's explanation of Caffe's
convolution, retold in the post "Pytorch 相关问题及学习" (2021). The row order of the columns is that of
`torch.nn.functional.unfold`: channels outermost, then kernel rows, then kernel columns.
"""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

IntPair = int | tuple[int, int]


def output_size(
    size: tuple[int, int], kernel_size: IntPair, stride: IntPair = 1, padding: IntPair = 0, dilation: IntPair = 1
) -> tuple[int, int]:
    """Number of positions (rows, columns) at which the window fits; (H - kh + 1, W - kw + 1) in the plain case.

    Raises ValueError when the window, spread by `dilation`, is larger than the padded image.
    """
    settings = zip(size, *map(_pair, (kernel_size, stride, padding, dilation)), strict=True)
    positions = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in settings]
    if min(positions) < 1:
        raise ValueError(
            f"`kernel_size` must be a window no larger than the padded image, got {_pair(kernel_size)} with dilation "
            f"{_pair(dilation)} on an image of {tuple(size)} with padding {_pair(padding)}"
        )
    return positions[0], positions[1]


def unfold(x: Tensor, kernel_size: IntPair, stride: IntPair = 1, padding: IntPair = 0, dilation: IntPair = 1) -> Tensor:
    """Columns of all windows, (B, C, H, W) -> (B, C * kh * kw, positions): one column a position, one row a tap.

    Equal to `torch.nn.functional.unfold`. A tap (i, j) of the window sees a shifted, strided copy of the image, so the
    whole matrix is kh * kw slices stacked.
    """
    _check_image(x)
    oh, ow = output_size((x.shape[2], x.shape[3]), kernel_size, stride, padding, dilation)
    ph, pw = _pair(padding)
    padded = F.pad(x, (pw, pw, ph, ph))
    taps = [padded[:, :, rows, cols] for rows, cols in _tap_slices((oh, ow), kernel_size, stride, dilation)]
    return torch.stack(taps, dim=2).reshape(x.shape[0], -1, oh * ow)


def fold(
    columns: Tensor,
    size: tuple[int, int],
    kernel_size: IntPair,
    stride: IntPair = 1,
    padding: IntPair = 0,
    dilation: IntPair = 1,
) -> Tensor:
    """Put columns back, (B, C * kh * kw, positions) -> (B, C, H, W); where windows overlap, values are *added*.

    Equal to `torch.nn.functional.fold`. It is the transpose of `unfold`, which makes it its gradient, and not its
    inverse: `fold(unfold(x)) == x * overlap_counts(...)`.
    """
    (kh, kw), (ph, pw) = _pair(kernel_size), _pair(padding)
    oh, ow = output_size(size, kernel_size, stride, padding, dilation)
    batch, rows, positions = columns.shape
    if rows % (kh * kw) or positions != oh * ow:
        raise ValueError(
            f"`columns` must be (B, C * {kh * kw}, {oh * ow}) for an image of {tuple(size)}, got {tuple(columns.shape)}"
        )
    taps = columns.view(batch, rows // (kh * kw), kh * kw, oh, ow).unbind(dim=2)
    padded = columns.new_zeros(batch, rows // (kh * kw), size[0] + 2 * ph, size[1] + 2 * pw)
    for tap, (tap_rows, tap_cols) in zip(taps, _tap_slices((oh, ow), kernel_size, stride, dilation), strict=True):
        padded[:, :, tap_rows, tap_cols] += tap
    return padded[:, :, ph : ph + size[0], pw : pw + size[1]]


def overlap_counts(
    size: tuple[int, int], kernel_size: IntPair, stride: IntPair = 1, padding: IntPair = 0, dilation: IntPair = 1
) -> Tensor:
    """In how many windows each pixel lies, (H, W) float32: what `fold` after `unfold` multiplies an image by."""
    ones = torch.ones(1, 1, *size)
    columns = unfold(ones, kernel_size, stride, padding, dilation)
    return fold(columns, size, kernel_size, stride, padding, dilation)[0, 0]


def filter_matrix(weight: Tensor, groups: int = 1) -> Tensor:
    """Convolution weights as matrices, (out, in / groups, kh, kw) -> (groups, out / groups, in / groups * kh * kw).

    Each filter is laid flat into one row; `groups` matrices, because a group sees its own channels only.
    """
    if groups < 1 or weight.shape[0] % groups:
        raise ValueError(f"`groups` must divide the {weight.shape[0]} output channels, got {groups}")
    return weight.reshape(groups, weight.shape[0] // groups, -1)


def unfold_conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: IntPair = 1,
    padding: IntPair = 0,
    dilation: IntPair = 1,
    groups: int = 1,
) -> Tensor:
    """`torch.nn.functional.conv2d` as unfold + matmul + reshape; differentiable, same arguments, same result.

    Shapes: x (B, in, H, W), weight (out, in / groups, kh, kw), bias (out,) -> (B, out, oh, ow).
    Raises ValueError when groups does not divide the channels, or the weight was made for other channels.
    """
    _check_image(x)
    channels, (kh, kw) = x.shape[1], weight.shape[2:]
    filters = filter_matrix(weight, groups)
    if channels % groups or weight.shape[1] != channels // groups:
        raise ValueError(
            f"`x` must have {weight.shape[1]} channels in each of {groups} groups, {weight.shape[1] * groups} in all, "
            f"got {channels}"
        )
    columns = unfold(x, (kh, kw), stride, padding, dilation).unflatten(1, (groups, -1))
    out = filters @ columns  # (groups, out / groups, taps) @ (B, groups, taps, positions)
    oh, ow = output_size((x.shape[2], x.shape[3]), (kh, kw), stride, padding, dilation)
    out = out.reshape(x.shape[0], weight.shape[0], oh, ow)
    return out if bias is None else out + bias.view(-1, 1, 1)


def _tap_slices(
    positions: tuple[int, int], kernel_size: IntPair, stride: IntPair, dilation: IntPair
) -> Iterator[tuple[slice, slice]]:
    """For each tap of the window, row by row: the rows and columns of the padded image that it visits."""
    (kh, kw), (sh, sw), (dh, dw) = _pair(kernel_size), _pair(stride), _pair(dilation)
    for i in range(kh):
        for j in range(kw):
            rows = slice(i * dh, i * dh + sh * (positions[0] - 1) + 1, sh)
            cols = slice(j * dw, j * dw + sw * (positions[1] - 1) + 1, sw)
            yield rows, cols


def _pair(value: IntPair) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def _check_image(x: Tensor) -> None:
    if x.ndim != 4:
        raise ValueError(f"`x` must be (B, C, H, W), got {tuple(x.shape)}")
