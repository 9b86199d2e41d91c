"""The operators of `nn.SyncBatchNorm`, which PyTorch has for GPUs only: statistics of each rank, and of all together.

The formulas are those of S. Ioffe and C. Szegedy, "Batch Normalization", 2015, with the sums over one rank's rows and
the sums over all ranks' rows told apart.
"""

from __future__ import annotations

import torch
from torch import Tensor

from vgpu.base.patches import Patches


def install(patches: Patches) -> None:
    """Give the CPU, which computes for virtual GPUs, the five operators."""
    for operator in (
        batch_norm_stats,
        batch_norm_gather_stats_with_counts,
        batch_norm_elemt,
        batch_norm_backward_reduce,
        batch_norm_backward_elemt,
    ):
        patches.kernel(operator.__name__, operator, "CPU")


def batch_norm_stats(input: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Mean and inverse deviation (C,) of one rank's input (N, C, ...)."""
    variance, mean = torch.var_mean(_wide(input), dim=_all_but_channels(input), correction=0)
    return mean, (variance + eps).rsqrt()


def batch_norm_gather_stats_with_counts(
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
    counts: Tensor,
) -> tuple[Tensor, Tensor]:
    """The same over all ranks, from each rank's (ranks, C) and its number of rows (ranks,); updates what runs along."""
    weights = (counts / counts.sum()).to(mean.dtype).unsqueeze(1)
    whole = (weights * mean).sum(dim=0)
    variance = (weights * (invstd**-2 - eps + (mean - whole) ** 2)).sum(dim=0)
    unbiased = variance * (counts.sum() / (counts.sum() - 1)).to(mean.dtype)
    for running, now in ((running_mean, whole), (running_var, unbiased)):
        if running is not None:
            running.lerp_(now.to(running.dtype), momentum)
    return whole, (variance + eps).rsqrt()


def batch_norm_elemt(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, invstd: Tensor, eps: float
) -> Tensor:
    """Normalise (N, C, ...)."""
    scale = invstd if weight is None else invstd * weight
    out = (_wide(input) - _along(mean, input)) * _along(scale, input)
    return (out if bias is None else out + _along(bias, input)).to(input.dtype)


def batch_norm_backward_reduce(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    input_g: bool,
    weight_g: bool,
    bias_g: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """One rank's sums (C,) of the gradient and of gradient times centred input; the gradients of weight and bias.

    All four are always computed, whatever `input_g`, `weight_g` and `bias_g` ask for.
    """
    others = _all_but_channels(input)
    grad_sum = _wide(grad_out).sum(dim=others)
    product_sum = (_wide(grad_out) * (_wide(input) - _along(mean, input))).sum(dim=others)
    like = mean if weight is None else weight
    return grad_sum, product_sum, (product_sum * invstd).to(like.dtype), grad_sum.to(like.dtype, copy=True)


def batch_norm_backward_elemt(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    sum_dy: Tensor,
    sum_dy_xmu: Tensor,
    count: Tensor,
) -> Tensor:
    """The gradient of the input, from the sums (C,) over all ranks and the rows (ranks,) of each."""
    rows = count.sum()
    slope = _along(sum_dy_xmu / rows * invstd**2, input)
    grad = _wide(grad_out) - _along(sum_dy / rows, input) - (_wide(input) - _along(mean, input)) * slope
    return (grad * _along(invstd if weight is None else invstd * weight, input)).to(input.dtype)


def _wide(x: Tensor) -> Tensor:
    """Halves are summed in float32."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _all_but_channels(x: Tensor) -> list[int]:
    return [dim for dim in range(x.dim()) if dim != 1]


def _along(values: Tensor, x: Tensor) -> Tensor:
    """(C,) beside (N, C, ...)."""
    return values.view(1, -1, *[1] * (x.dim() - 2))
