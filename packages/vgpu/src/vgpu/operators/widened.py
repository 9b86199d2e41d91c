"""Operators that CUDA computes in a dtype and the host does not: they run in a wider one, and are narrowed."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_map

from vgpu.hardware import kernels
from vgpu.operators import fft

_C32 = torch.complex32
_HALVES = (torch.float16, torch.bfloat16)
# By dtype: the dtype that the host computes in, and the operators (names without the underscore of in-place forms).
_COMPLEX = frozenset(
    (
        *("acos", "acosh", "angle", "asin", "asinh", "atan", "atanh", "cos", "cosh", "sin", "sinh", "tan", "tanh"),
        *("exp", "log", "logaddexp", "logsumexp", "pow", "rsqrt", "sigmoid", "sqrt", "square"),
        *("div.Tensor", "div.Scalar", "lerp", "ldexp", "equal"),
        *("nanmean", "nansum", "prod", "sum", "trace"),
        *("channel_shuffle", "diag", "eye", "gather", "pixel_shuffle", "pixel_unshuffle", "scatter"),
        *("_fft_c2c", "_fft_c2r"),
    )
)
_HALF = frozenset(
    (
        *("avg_pool3d", "avg_pool3d_backward", "multi_margin_loss", "multi_margin_loss_backward"),
        *("multilabel_margin_loss_forward", "multilabel_margin_loss_backward", "polygamma", "round", "trace"),
        *("rrelu_with_noise", "_fft_r2c", "nms"),
        *("_upsample_bilinear2d_aa", "_upsample_bilinear2d_aa_backward"),
        *("_upsample_bicubic2d_aa", "_upsample_bicubic2d_aa_backward"),
    )
)
_WIDER: dict[torch.dtype, tuple[torch.dtype, frozenset[str]]] = {
    _C32: (torch.complex64, _COMPLEX),
    torch.float16: (torch.float32, _HALF),
    torch.bfloat16: (torch.float32, _HALF),
    torch.bool: (torch.uint8, frozenset(("abs", "median", "nanmedian", "trace"))),
    **dict.fromkeys(
        (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64), (torch.float64, frozenset(("histc",)))
    ),
}
_REFUSED = ("not implemented for", "doesn't support tensors of type", "does not support complex inputs")


def result(func: torch._ops.OpOverload, args: list, kwargs: dict, error: RuntimeError | IndexError) -> Any:
    """The result of an operator whose kernel on the host has just raised `error`, from a wider dtype.

    Args:
        func: the operator.
        args: its arguments on the host.
        kwargs: those given by name.
        error: what the kernel raised.

    Raises:
        RuntimeError: the error, in CUDA's words, where CUDA computes no more than the host.
    """
    name = func._schema.name.partition("::")[2].removesuffix("_")
    if any(part in str(error) for part in _REFUSED):
        if name == "nansum":
            return _nansum(*args, **kwargs)
        for dtype in _dtypes(args, kwargs):
            wider, names = _WIDER.get(dtype, (None, frozenset()))
            if wider is not None and (name in names or f"{name}.{func._overloadname}" in names):
                if name.startswith("_fft"):
                    fft.check_sizes(_signal(*args), args[1])
                return _computed(func, args, kwargs, dtype, wider)
    raise kernels.in_cudas_words(error, name) from None


def _signal(spectrum: torch.Tensor, dims: list[int], normalization: int, last: Any) -> list[int]:
    """The shape of a transform's signal; `last` is the size of the last of `dims`, where the result is real."""
    shape = list(spectrum.shape)
    if not spectrum.is_complex() or isinstance(last, bool):
        return shape
    shape[dims[-1]] = last
    return shape


def _nansum(values: torch.Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> torch.Tensor:
    wide = torch.where(values.isnan(), 0, values).to(torch.complex128)
    return wide.sum(dim, keepdim).to(dtype or values.dtype)


def _dtypes(args: list, kwargs: dict) -> dict[torch.dtype, None]:
    """The dtypes that appear in the arguments, in order."""
    found: dict[torch.dtype, None] = {}

    def note(value: Any) -> None:
        dtype = value.dtype if isinstance(value, torch.Tensor) else value
        if isinstance(dtype, torch.dtype):
            found[dtype] = None

    tree_map(note, (args, kwargs))
    return found


def _computed(func: Any, args: list, kwargs: dict, dtype: torch.dtype, wider: torch.dtype) -> Any:
    """Run the operator on wide copies; what it has written to is copied back, and results are made narrow."""
    wide: list[tuple[torch.Tensor, torch.Tensor]] = []

    def widen(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dtype is dtype:
            wide.append((value, value.to(wider)))
            return wide[-1][1]
        return wider if value is dtype else value

    narrow = {wider: dtype}
    if dtype is _C32:
        narrow[torch.float32] = torch.float16

    def narrowed(value: Any) -> Any:
        for original, copy in wide:
            if value is copy:
                return original
        is_wide = isinstance(value, torch.Tensor) and value.dtype in narrow
        return value.to(narrow[value.dtype]) if is_wide else value

    outcome = func(*tree_map(widen, args), **tree_map(widen, kwargs))
    if func._schema.is_mutable:
        for original, copy in wide:
            original.copy_(copy)
    return tree_map(narrowed, outcome)
