"""The names of CUDA's kernels, which PyTorch puts into `"addmm_cuda" not implemented for 'Half'`.

The host's kernel raises the same sentence with a name of its own. Most names differ in their end alone (`gcd_cpu`); the
others are listed here, as a GPU gave them (tests/hardware) or as PyTorch's CUDA library holds them.
"""

from __future__ import annotations

import re

_CUDA = {
    "GeluKernelImpl": "GeluCUDAKernelImpl",
    "GeluBackwardKernelImpl": "GeluBackwardCUDAKernelImpl",
    "_segment_reduce_cpu": "segment_reduce_cuda",
    "adaptive_avg_pool2d": "adaptive_avg_pool2d_cuda",
    "adaptive_avg_pool3d_cpu": "adaptive_avg_pool3d_cuda",
    "adaptive_max_pool2d": "adaptive_max_pool2d_cuda",
    "adaptive_max_pool3d_cpu": "adaptive_max_pool3d_cuda",
    "add_stub": "ufunc_add_CUDA",
    "addcdiv_cpu_out": "addcdiv_cuda",
    "addcmul_cpu_out": "addcmul_cuda",
    "addmm_impl_cpu_": "addmm_cuda",
    "aminmax_cpu": "aminmax_all_cuda",
    "avg_pool2d": "avg_pool2d_out_cuda_frame",
    "avg_pool3d_out_frame": "avg_pool3d_out_cuda",
    "baddbmm": "baddbmm_cuda",
    "bmm": "baddbmm_cuda",
    "batch_norm": "batch_norm_stats_cuda",
    "cdist": "cdist_cuda",
    "cholesky_cpu": "cholesky_cusolver",
    "clamp_max_scalar_cpu": "clamp_scalar_cuda",
    "clamp_min_scalar_cpu": "clamp_scalar_cuda",
    "clamp_scalar_cpu": "clamp_scalar_cuda",
    "compute_index_ranges_weights": "upsample_bilinear2d_out_frame",
    "compute_indices_weights_cubic": "upsample_bicubic2d_out_frame",
    "compute_indices_weights_linear": "upsample_linear1d_out_frame",
    "compute_indices_weights_nearest": "upsample_nearest1d_out_frame",
    "cross": "cross_cuda",
    "cumprod_out_cpu": "cumprod_cuda",
    "cumsum_out_cpu": "cumsum_cuda",
    "digamma": "digamma_cuda",
    "div_cpu": "div_true_cuda",
    "eq_cpu": "compare_eq_ne_cuda",
    "erfc": "erfc_cuda",
    "exp2": "exp2_cuda",
    "expm1": "expm1_cuda",
    "fractional_max_pool2d_out_frame": "fractional_max_pool2d_out_cuda_frame",
    "fractional_max_pool3d_out_frame": "fractional_max_pool3d_out_frame",
    "ge_cpu": "compare_cuda",
    "grid_sampler3d_cpu": "grid_sampler_3d_cuda",
    "grid_sampler_2d_cpu_kernel_impl": "grid_sampler_2d_cuda",
    "gt_cpu": "compare_cuda",
    "histogram_cpu": "histc",
    "index_func_": "index_reduce",
    "ldl_factor_kernel_cpu": "ldl_factor_looped_cusolver",
    "le_cpu": "compare_cuda",
    "lgamma": "lgamma_cuda",
    "lerp_kernel_scalar": "lerp_cuda",
    "lerp_kernel_tensor": "lerp_cuda",
    "linalg_svd_cpu": "svd_cuda_gesvdjBatched",
    "log_sigmoid_cpu": "log_sigmoid_forward_cuda",
    "log_softmax_lastdim_kernel_impl": "host_softmax",
    "logcumsumexp_out_cpu": "logcumsumexp_cuda",
    "lt_cpu": "compare_cuda",
    "lu_cpu": "lu_factor_magma_batched",
    "masked_fill": "masked_fill_",
    "masked_scatter": "masked_scatter_",
    "max_pool2d": "max_pool2d_with_indices_out_cuda_frame",
    "max_pool3d": "max_pool3d_with_indices_out_frame",
    "maximum_cpu": "max_elementwise_cuda",
    "min_all": "min_all_cuda",
    "minimum_cpu": "min_elementwise_cuda",
    "mode_cpu": "cuda_mode",
    "multi_margin_loss_cpu_kernel": "multi_margin_loss_cuda",
    "multilabel_margin_loss_forward_out_frame": "multilabel_margin_loss_forward_kernel",
    "ne_cpu": "compare_eq_ne_cuda",
    "nll_loss2d_forward_out_frame": "nll_loss2d_forward_kernel",
    "nll_loss_out_frame": "nll_loss_forward_no_reduce_cuda_kernel",
    "pow": "pow_cuda",
    "reflection_pad1d": "reflection_pad1d_out",
    "reflection_pad2d": "reflection_pad2d_out_template",
    "reflection_pad3d": "reflection_pad3d_out_cuda",
    "replication_pad1d": "replication_pad1d_cuda",
    "replication_pad2d": "replication_pad2d_cuda",
    "replication_pad3d": "replication_pad3d_cuda",
    "scatter_gather_scalar_cpu": "cuda_scatter_fill_base_kernel_func",
    "softmax_lastdim_kernel_impl": "host_softmax",
    "take_put_cpu": "put_cuda",
    "trigamma": "trigamma_cuda",
    "upsample_bilinear2d_channels_last": "upsample_bilinear2d_out_frame",
    "upsample_nearest2d_channels_last": "upsample_nearest2d_out_frame",
}
# Where one kernel of the host serves operators that have kernels of their own on CUDA.
_OF_OPERATOR = {
    ("histc", "aminmax_cpu"): "histc",
    ("histc", "linspace_cpu"): "histc",
    ("_linalg_solve_ex", "lu_cpu"): "lu_factor_cusolver",
    ("mean", "sum_cpu"): "mean_cuda",
    ("take", "take_put_cpu"): "take_cuda",
    ("gather", "scatter_gather_tensor_cpu"): "gather_cuda",
    ("upsample_bilinear2d", "compute_indices_weights_linear"): "upsample_bilinear2d_out_frame",
    ("upsample_nearest2d", "compute_indices_weights_nearest"): "upsample_nearest2d_out_frame",
    ("upsample_nearest3d", "compute_indices_weights_nearest"): "upsample_nearest3d_out_frame",
    ("upsample_trilinear3d", "compute_indices_weights_linear"): "upsample_trilinear3d_out_frame",
    ("_upsample_bicubic2d_aa", "compute_index_ranges_weights"): "upsample_bicubic2d_out_frame",
}
_SCATTER = re.compile(r"scatter_gather_tensor_cpu.*")
_NOT_IMPLEMENTED = re.compile(r'"(\w+)" not implemented for')


_HOST_TYPE = re.compile(r"\btorch\.(?=(?:sparse\.)?[A-Z][A-Za-z0-9]*Tensor\b)")
_OTHER_WORDS = (("expected m1 and m2 to have the same dtype", "expected mat1 and mat2 to have the same dtype"),)


def in_cudas_words(error: Exception, operator: str) -> Exception:
    """An error of the host's kernels as CUDA's would put it; the error itself where they say the same.

    Args:
        error: what the kernel on the host has raised.
        operator: the name of the operator that failed, without a namespace, as in `addmm`.
    """
    text = str(error)
    words = _NOT_IMPLEMENTED.sub(lambda found: f'"{_name(found[1], operator)}" not implemented for', text)
    words = _HOST_TYPE.sub("torch.cuda.", words)
    for host, cuda in _OTHER_WORDS:
        words = words.replace(host, cuda)
    return error if words == text else type(error)(words)


def _name(host: str, operator: str) -> str:
    known = _OF_OPERATOR.get((operator, host)) or _CUDA.get(host)
    if known is not None:
        return known
    if _SCATTER.fullmatch(host):
        return "cuda_scatter_gather_base_kernel_func"
    return re.sub(r"(_vml)?_cpu$", "_cuda", host)
