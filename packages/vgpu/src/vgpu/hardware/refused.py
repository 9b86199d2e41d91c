"""The operators that CUDA refuses for a dtype, or does not have, where the host's kernels run.

Each row was recorded on a GPU (tests/hardware), or shares a kernel with such a row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

INTEGERS = frozenset((torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64))
COMPLEX = frozenset((torch.complex32, torch.complex64, torch.complex128))
HALVES = frozenset((torch.float16, torch.bfloat16))
BOOL = frozenset((torch.bool,))
_LONG, _BYTE = frozenset((torch.int64,)), frozenset((torch.uint8,))
_COMPLEX_HALF = frozenset((torch.complex32,))
_BFLOAT16 = frozenset((torch.bfloat16,))


class Refusal(NamedTuple):
    """One error of CUDA's for some dtypes of an operator's first tensor; `{}` in the text is the dtype's name."""

    dtypes: frozenset[torch.dtype]
    text: str
    error: type[Exception] = RuntimeError


def _kernel(name: str, *dtypes: frozenset[torch.dtype]) -> Refusal:
    return Refusal(frozenset().union(*dtypes), f"\"{name}\" not implemented for '{{}}'", NotImplementedError)


_NO_DESCRIPTOR = "getCudnnDataTypeFromScalarType() not supported for {}"
_UNSUPPORTED = frozenset((torch.int16, torch.int64, torch.bool))
_SMALL = frozenset((torch.int32, torch.int8, torch.uint8))
_CONVOLUTION = (
    Refusal(_UNSUPPORTED, _NO_DESCRIPTOR),
    Refusal(_SMALL, "GET was unable to find an engine to execute this computation"),
)
_BATCH_NORM = (
    Refusal(_UNSUPPORTED | COMPLEX, _NO_DESCRIPTOR),
    Refusal(_SMALL, "TensorDescriptor does not support {}"),
)
_NO_ACCUMULATOR = Refusal(
    _COMPLEX_HALF,
    'false INTERNAL ASSERT FAILED at "/pytorch/aten/src/ATen/AccumulateType.cpp":23, please report a bug to PyTorch. '
    "Unrecognized ScalarType: {}",
)
_NOT_FLOATING = (
    "Expected self.is_floating_point() to be true, but got false.  (Could this error message be improved?  If so, "
    "please report an enhancement request to PyTorch.)"
)
_NO_FFT = "cuFFT doesn't support tensor of type: {}"
_WIDE = INTEGERS | COMPLEX | BOOL | {torch.float32, torch.float64}
_MATRICES = {
    "addmm": "addmm_cuda",
    "mm": "addmm_cuda",
    "addmv": "addmv_impl_cuda",
    "mv": "addmv_impl_cuda",
    "baddbmm": "baddbmm_cuda",
    "bmm": "baddbmm_cuda",
    "addbmm": "baddbmm_cuda",
    "dot": "dot",
    "vdot": "vdot",
}
# By operator: its name without namespace and overload.
DTYPES: dict[str, tuple[Refusal, ...]] = {
    **{name: (_kernel(kernel, INTEGERS),) for name, kernel in _MATRICES.items()},
    **dict.fromkeys(("convolution", "_convolution"), _CONVOLUTION),
    **dict.fromkeys(("native_batch_norm", "_batch_norm_with_update"), _BATCH_NORM),
    "_native_batch_norm_legit": (_NO_ACCUMULATOR,),
    "native_layer_norm": (_NO_ACCUMULATOR,),
    "_fft_r2c": (Refusal(COMPLEX, _NOT_FLOATING), Refusal(_BFLOAT16, _NO_FFT)),
    "_fft_c2c": (Refusal(_BFLOAT16, _NO_FFT),),
    "_flash_attention_forward": (Refusal(_WIDE, "FlashAttention only support fp16 and bf16 data type"),),
    "_adaptive_avg_pool2d": (_kernel("adaptive_avg_pool2d_cuda", INTEGERS),),
    "_adaptive_avg_pool3d": (_kernel("adaptive_avg_pool3d_cuda", INTEGERS),),
    "adaptive_max_pool2d": (_kernel("adaptive_max_pool2d_cuda", INTEGERS),),
    "adaptive_max_pool3d": (_kernel("adaptive_max_pool3d_cuda", INTEGERS),),
    "avg_pool2d": (_kernel("avg_pool2d_out_cuda_frame", _LONG),),
    "avg_pool3d": (_kernel("avg_pool3d_out_cuda", _LONG),),
    "max_pool2d_with_indices": (_kernel("max_pool2d_with_indices_out_cuda_frame", INTEGERS),),
    "max_pool3d_with_indices": (_kernel("max_pool3d_with_indices_out_frame", INTEGERS),),
    "upsample_bilinear2d": (_kernel("upsample_bilinear2d_out_frame", _BYTE),),
    "_upsample_bilinear2d_aa": (_kernel("upsample_bilinear2d_out_frame", _BYTE),),
    "upsample_bicubic2d": (_kernel("upsample_bicubic2d_out_frame", _BYTE),),
    "_upsample_bicubic2d_aa": (_kernel("upsample_bicubic2d_out_frame", _BYTE),),
    "addcmul": (_kernel("addcmul_cuda", _COMPLEX_HALF),),
    "angle": (_kernel("angle_cuda", HALVES),),
    "polar": (_kernel("polar_cuda", frozenset((torch.float16,))),),
    "igamma": (_kernel("igamma_cuda", HALVES),),
    "igammac": (_kernel("igammac_cuda", HALVES),),
    "histc": (
        Refusal(frozenset((torch.float16,)), "HalfTensor is not supported"),
        _kernel("histc", _BFLOAT16),
    ),
    "median": (Refusal(COMPLEX, "Sort does not support complex dtypes on CPU"),),
    "nanmedian": (Refusal(COMPLEX, "Sort does not support complex dtypes on CPU"),),
    "native_dropout_backward": (_kernel("masked_scale", INTEGERS, COMPLEX, BOOL),),
    "scatter_reduce": (
        _kernel("scatter_reduce_exclude_input_init", _COMPLEX_HALF),
        _kernel("cuda_scatter_gather_base_kernel_func", BOOL, COMPLEX),
    ),
}

# A row of DTYPES holds where this is true of the arguments, by name.
ONLY_IF: dict[str, Callable[[dict[str, Any]], bool]] = {"scatter_reduce": lambda given: given["reduce"] != "sum"}

# Operators of the host that have no kernel for CUDA.
ABSENT = frozenset(
    (
        "_histogramdd_bin_edges",
        "_histogramdd_from_bin_cts",
        "_histogramdd_from_bin_tensors",
        "_spdiags",
        "histogram",
        "to_mkldnn",
        "_add_relu",
    )
)

# Operators of CUDA that virtual GPUs do not simulate.
NOT_SIMULATED = frozenset(("_scaled_mm_v2",))
