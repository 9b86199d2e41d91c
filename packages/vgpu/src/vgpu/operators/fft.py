"""`torch.fft` in half precision, which cuFFT has and the host's library has not: computed in float32, and narrowed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from vgpu.base.patches import Patches
from vgpu.tensors.tensor import is_virtual

_FROM_REAL = ("rfft", "rfft2", "rfftn", "ihfft", "ihfft2", "ihfftn")
_FROM_COMPLEX = ("fft", "fft2", "fftn", "ifft", "ifft2", "ifftn", "irfft", "irfft2", "irfftn", "hfft", "hfft2", "hfftn")


def install(patches: Patches) -> None:
    """Replace the functions that ask C++ whether the device can compute in half precision."""
    for name in (*_FROM_REAL, *_FROM_COMPLEX):
        patches.set(torch.fft, name, _transform(getattr(torch.fft, name), name in _FROM_REAL))


def _transform(function: Callable, from_real: bool) -> Callable:
    @functools.wraps(function)
    def transform(input: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if not is_virtual(input) or input.dtype is not torch.float16:
            return function(input, *args, **kwargs)
        if not from_real:
            return function(input.to(torch.complex32), *args, **kwargs)
        spectrum = function(input.float(), *args, **kwargs)
        check_sizes(input.shape, [d for d in range(input.dim()) if input.shape[d] != spectrum.shape[d]])
        return spectrum.to(torch.complex32)

    return transform


def check_sizes(shape: Any, dims: Any) -> None:
    """Raise what cuFFT raises in half precision for sizes that are no powers of two.

    Args:
        shape: of the signal.
        dims: those that are transformed.
    """
    sizes = [shape[d] for d in dims]
    if any(size & (size - 1) for size in sizes):
        raise RuntimeError(
            "cuFFT only supports dimensions whose sizes are powers of two when computing in half precision, but got a "
            f"signal size of{sizes}"
        )
