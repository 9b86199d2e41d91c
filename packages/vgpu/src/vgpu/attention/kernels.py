"""What CUDA's operators for attention compute, on the CPU tensors beneath: PyTorch has these operators for GPUs only.

Where the CPU's own fused operator computes the same, it does so here. For the rest (dropout, keys that several heads of
queries share, values of a width of their own, the gradient of a mask) there are the formulas. With scores
S = scale * Q K' + mask, weights P = softmax(S) and output O = P V, the forward keeps the logarithms of the softmax's
sums, and the backward computes P from them again, as in T. Dao and others, "FlashAttention", 2022. It must use those
sums and no softmax of its own, because context parallelism hands it sums over the keys of all ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from vgpu.base import errors
from vgpu.machine import distributions, philox, rng
from vgpu.machine.rng import CPUGenerator

_aten = torch.ops.aten
_SEEDS = 1 << 62
_ROWS = 32  # the memory-efficient operator keeps its sums in multiples of these


class _Settings(NamedTuple):
    """How scores and weights come from queries and keys."""

    bias: Tensor | None
    dropout_p: float
    is_causal: bool
    scale: float | None
    drawn_at: tuple[int, int] | None = None  # seed and offset, where dropout draws the numbers of a GPU


def flash(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple:
    """`_scaled_dot_product_flash_attention`."""
    if return_debug_mask:
        raise errors.not_simulated("the debug mask of flash attention")
    settings = _Settings(None, dropout_p, is_causal, scale)
    out, sums, seed = _forward(query, key, value, settings)
    state = torch.tensor([seed, 0], dtype=torch.uint64)
    unused, no_mask = torch.zeros((), dtype=torch.uint64), query.new_empty(0)
    return _like(out, query), sums, None, None, query.size(2), key.size(2), state, unused, no_mask


def flash_backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    cum_seq_q: Any,
    cum_seq_k: Any,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    philox_seed: Tensor,
    philox_offset: Tensor,
    *,
    scale: float | None = None,
) -> tuple:
    """The gradients of queries, keys and values."""
    settings = _Settings(None, dropout_p, is_causal, scale)
    seed = int(philox_seed[0]) if dropout_p else 0
    dq, dk, dv, _ = _backward(grad_out, query, key, value, out, logsumexp, settings, seed, of_bias=False)
    return _like(dq, query), _like(dk, key), _like(dv, value)


def efficient(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Tensor | None,
    compute_log_sumexp: bool,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    drawn_at: tuple[int, int] | None = None,
) -> tuple:
    """`_scaled_dot_product_efficient_attention`; RuntimeError for a mask of a dtype that is not the queries'."""
    if attn_bias is not None and attn_bias.dtype != query.dtype:
        raise RuntimeError("invalid dtype for bias - should match query's dtype")
    out, sums, seed = _forward(query, key, value, _Settings(attn_bias, dropout_p, is_causal, scale, drawn_at))
    if compute_log_sumexp:
        kept = torch.nn.functional.pad(sums, (0, -sums.size(-1) % _ROWS), value=float("inf"))
    else:
        kept = sums.new_empty(*sums.shape[:2], 0)
    seed, offset = drawn_at or (seed, 0)
    return _by_rows(out), kept, torch.tensor(seed, dtype=torch.uint64).view(torch.int64), torch.tensor(offset)


def efficient_backward(
    grad_out_: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Tensor | None,
    out: Tensor,
    logsumexp: Tensor,
    philox_seed: Tensor,
    philox_offset: Tensor,
    dropout_p: float,
    grad_input_mask: list[bool],
    is_causal: bool = False,
    *,
    scale: float | None = None,
) -> tuple:
    """The gradients of queries, keys, values and mask."""
    seed = int(philox_seed) % (1 << 64) if dropout_p else 0
    drawn_at = (seed, int(philox_offset)) if rng.chosen() == "cuda" else None
    settings = _Settings(attn_bias, dropout_p, is_causal, scale, drawn_at)
    wants_bias = attn_bias is not None and grad_input_mask[3]
    dq, dk, dv, dbias = _backward(grad_out_, query, key, value, out, logsumexp, settings, seed, of_bias=wants_bias)
    return _by_rows(dq), _by_rows(dk), _by_rows(dv), dbias


def cudnn(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Tensor | None,
    compute_log_sumexp: bool,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple:
    """`_scaled_dot_product_cudnn_attention`."""
    out, sums, seed = _forward(query, key, value, _Settings(attn_bias, dropout_p, is_causal, scale))
    lengths = query.size(2), key.size(2)
    return _like(out, query), sums.unsqueeze(-1), None, None, *lengths, torch.tensor(seed), torch.tensor(0), None


def cudnn_backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    philox_seed: Tensor,
    philox_offset: Tensor,
    attn_bias: Tensor | None,
    cum_seq_q: Any,
    cum_seq_k: Any,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    *,
    scale: float | None = None,
) -> tuple:
    """The gradients of queries, keys and values; cuDNN has none for the mask."""
    settings = _Settings(attn_bias, dropout_p, is_causal, scale)
    seed = int(philox_seed) if dropout_p else 0
    dq, dk, dv, _ = _backward(grad_out, query, key, value, out, logsumexp.squeeze(-1), settings, seed, of_bias=False)
    return _like(dq, query), _like(dk, key), _like(dv, value)


def _refused(name: str) -> Callable:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise errors.not_simulated(f"the operator {name}")

    return refuse


#: By operator, what dispatch.py calls in its place.
KERNELS: dict[torch._ops.OpOverload, Callable] = {
    _aten._scaled_dot_product_flash_attention.default: flash,
    _aten._scaled_dot_product_flash_attention_backward.default: flash_backward,
    _aten._scaled_dot_product_efficient_attention.default: efficient,
    _aten._scaled_dot_product_efficient_attention_backward.default: efficient_backward,
    _aten._scaled_dot_product_cudnn_attention.default: cudnn,
    _aten._scaled_dot_product_cudnn_attention_backward.default: cudnn_backward,
}
# The layer below them, for sequences of several lengths in one tensor.
for _below in ("_flash_attention_forward", "_efficient_attention_forward", "_cudnn_attention_forward"):
    if hasattr(_aten, _below):
        KERNELS[getattr(_aten, _below).default] = _refused(f"aten::{_below}")


def _forward(q: Tensor, k: Tensor, v: Tensor, settings: _Settings) -> tuple[Tensor, Tensor, int]:
    """Output, logarithms of the sums (batch, heads, queries), and the seed of dropout."""
    if _cpu_has_it(q, k, v, settings):
        out, sums = _aten._scaled_dot_product_flash_attention_for_cpu(
            q, k, v, 0.0, settings.is_causal, attn_mask=settings.bias, scale=settings.scale
        )
        return out, sums, 0
    # The generator of the device stands in the place of the CPU's while an operator draws (rng.py).
    seed = int(torch.randint(_SEEDS, ())) if settings.dropout_p and settings.drawn_at is None else 0
    scores = _scores(q, k, settings)
    sums = scores.logsumexp(-1)
    weights = _weights(scores, sums) * _kept(scores, settings, seed)
    return (weights @ _wide(v, q)).to(q.dtype), sums, seed


def _backward(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    sums: Tensor,
    settings: _Settings,
    seed: int,
    *,
    of_bias: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The gradients of queries, keys, values and, if asked for, of the mask."""
    sums = sums[..., : q.size(2)]
    if _cpu_has_it(q, k, v, settings) and not of_bias:
        return *_aten._scaled_dot_product_flash_attention_for_cpu_backward(
            grad, q, k, v, out, sums, 0.0, settings.is_causal, attn_mask=settings.bias, scale=settings.scale
        ), None
    wide = grad.to(torch.promote_types(grad.dtype, torch.float32))
    weights = _weights(_scores(q, k, settings), sums)
    kept = _kept(weights, settings, seed)
    along = (wide * out).sum(-1, keepdim=True)
    of_scores = weights * ((wide @ _wide(v, q).transpose(-2, -1)) * kept - along)
    of_products = of_scores * _scale(q, settings)
    return (
        (of_products @ _wide(k, q)).to(q.dtype),
        _per_head(of_products.transpose(-2, -1) @ _wide(q, q), k),
        _per_head((weights * kept).transpose(-2, -1) @ wide, v),
        of_scores.to(settings.bias.dtype) if of_bias and settings.bias is not None else None,
    )


def _cpu_has_it(q: Tensor, k: Tensor, v: Tensor, settings: _Settings) -> bool:
    """True where the CPU's fused operator computes this."""
    return (
        not settings.dropout_p
        and q.shape[:2] == k.shape[:2] == v.shape[:2]
        and q.size(3) == k.size(3) == v.size(3)
        and all(x.numel() and x.stride(-1) == 1 for x in (q, k, v))
    )


def _scale(q: Tensor, settings: _Settings) -> float:
    return q.size(-1) ** -0.5 if settings.scale is None else settings.scale


def _scores(q: Tensor, k: Tensor, settings: _Settings) -> Tensor:
    scores = (_wide(q, q) @ _wide(k, q).transpose(-2, -1)) * _scale(q, settings)
    if settings.is_causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
    return scores if settings.bias is None else scores + settings.bias


def _weights(scores: Tensor, sums: Tensor) -> Tensor:
    """The softmax, from its sums; all zeros for a query that may attend to nothing."""
    return (scores - sums.masked_fill(sums == float("-inf"), float("inf")).unsqueeze(-1)).exp()


def _kept(like: Tensor, settings: _Settings, seed: int) -> Tensor | float:
    """Zero for what dropout takes away, and the factor that makes up for it elsewhere."""
    dropout_p = settings.dropout_p
    if dropout_p in (0.0, 1.0):
        return 1.0 - dropout_p
    if settings.drawn_at is None:
        kept = torch.rand(like.shape, generator=CPUGenerator().manual_seed(seed)) >= dropout_p
    else:  # kernel_forward.h of the memory-efficient operator: one number for each pair, the first thread's
        kept = distributions.unit(philox.sequence(*settings.drawn_at, like.numel())).view(like.shape) > dropout_p
    return kept.to(like.dtype) / (1.0 - dropout_p)


def _wide(x: Tensor, q: Tensor) -> Tensor:
    """In float32 at least, and once for each head of the queries."""
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    return x if x.size(1) == q.size(1) else x.repeat_interleave(q.size(1) // x.size(1), 1)


def _per_head(grad: Tensor, x: Tensor) -> Tensor:
    """A gradient for each head of the queries, added up for the heads of `x`."""
    if grad.size(1) != x.size(1):
        grad = grad.unflatten(1, (x.size(1), -1)).sum(2)
    return grad.to(x.dtype)


def _like(out: Tensor, x: Tensor) -> Tensor:
    """`out` in the order of memory that `x` has: rules of DTensor's know the strides of a result beforehand."""
    if out.shape == x.shape:
        made = torch.empty_like(x)
    else:
        order = sorted(range(x.dim()), key=lambda dim: x.stride(dim) or float("inf"), reverse=True)
        made = x.new_empty([out.size(dim) for dim in order])
        made = made.permute([order.index(dim) for dim in range(x.dim())])
    return out if out.stride() == made.stride() else made.copy_(out)


def _by_rows(out: Tensor) -> Tensor:
    """`out` (batch, heads, rows, width) in memory by rows, then by heads, as the memory-efficient operator has it."""
    return out.transpose(1, 2).contiguous().transpose(1, 2)
