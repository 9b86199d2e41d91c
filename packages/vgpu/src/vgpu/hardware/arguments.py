"""The checks that CUDA's kernels make of their arguments and the host's do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from vgpu.base import errors

Given = dict[str, Any]


def _int_mm(given: Given) -> None:
    left, right = given["self"], given["mat2"]
    if left.shape[0] <= 16:
        raise RuntimeError(f"self.size(0) needs to be greater than 16, but got {left.shape[0]}")
    for name, size in (("self", left.shape[1]), ("mat2", right.shape[1])):
        if size == 0 or size % 8:
            raise RuntimeError(f"{name}.size(1) needs to be greater than 0 and a multiple of 8, but got {size}")


def _scaled_mm(given: Given) -> None:
    if given["self"].stride(1) != 1 or given["mat2"].stride(0) != 1:
        raise RuntimeError("Only multiplication of row-major and column-major matrices is supported by cuBLASLt")


def _lstsq(given: Given) -> None:
    if given.get("driver") not in (None, "gels"):
        raise RuntimeError("torch.linalg.lstsq: `driver` other than `gels` is not supported on CUDA")


def _sparse_mm(given: Given) -> None:
    matrices = [value for value in given.values() if isinstance(value, torch.Tensor)]
    if any(m.is_sparse for m in matrices) and any(m.dtype is torch.float16 for m in matrices):
        raise NotImplementedError("\"addmm_sparse_cuda\" not implemented for 'Half'")


def _convolution(given: Given) -> None:
    kind = errors.tensor_type(given["input"])
    for name in ("weight", "bias"):
        other = given.get(name)
        if other is not None and errors.tensor_type(other) != kind:
            raise RuntimeError(f"Input type ({kind}) and {name} type ({errors.tensor_type(other)}) should be the same")


def _nll_loss(given: Given) -> None:
    values, target = given["self"], given["target"]
    if target.dtype in (torch.int64, torch.uint8) or target.dim() != values.dim() - 1:
        return
    kernel = "reduce_cuda_kernel_1d_index" if values.dim() == 1 else "reduce_cuda_kernel_2d_index"
    if values.dim() == 2 and given["reduction"] == 0:
        kernel = "no_reduce_cuda_kernel_index"
    raise NotImplementedError(f"\"nll_loss_forward_{kernel}\" not implemented for '{_name(target)}'")


def _cross(given: Given) -> None:
    values, other = given["self"], given["other"]
    if values.dtype != other.dtype:
        raise RuntimeError(f"Found dtype {_name(other)} but expected {_name(values)}")


def _normalization(given: Given) -> None:
    """Weights in float32 for an input in half precision, which the host's kernels take."""
    values = given["input"]
    for name in ("weight", "bias"):
        other = given.get(name)
        if other is not None and other.dtype != values.dtype and values.is_floating_point():
            raise RuntimeError(f"expected scalar type {_name(values)} but found {_name(other)}")


def _name(tensor: torch.Tensor) -> str:
    return errors.LEGACY_NAMES.get(tensor.dtype, str(tensor.dtype))


def _batch_norm(given: Given) -> None:
    """A batch of vectors is not cuDNN's, and PyTorch's own kernel has words of its own."""
    values = given["input"]
    if values.dim() < 3 and not values.is_floating_point():
        raise NotImplementedError(f"\"batch_norm_stats_cuda\" not implemented for '{_name(values)}'")


# By operator, its name without namespace and overload: called with the arguments by name, it raises.
def _lengths(given: Given) -> None:
    lengths = given["lengths"]
    if lengths.is_cuda:
        found = f"{lengths.dim()}D {lengths.device} {_name(lengths)} tensor"
        raise RuntimeError(f"'lengths' argument should be a 1D CPU int64 tensor, but got {found}")


CHECKS: dict[str, Callable[[Given], None]] = {
    **dict.fromkeys(("mm", "addmm", "_sparse_mm", "_sparse_addmm"), _sparse_mm),
    **dict.fromkeys(("convolution", "_convolution"), _convolution),
    **dict.fromkeys(("cross", "linalg_cross"), _cross),
    **dict.fromkeys(("native_layer_norm", "native_group_norm"), _normalization),
    "nll_loss_forward": _nll_loss,
    "_int_mm": _int_mm,
    "_scaled_mm": _scaled_mm,
    "linalg_lstsq": _lstsq,
    "native_batch_norm": _batch_norm,
    "_pack_padded_sequence": _lengths,
}
