"""`scaled_dot_product_attention` on virtual GPUs: it runs as the operator that CUDA would choose.

PyTorch asks C++ which operator computes attention, and C++ takes a virtual tensor for a CPU tensor. The CPU's operator
has the right values, but DTensor has no rule for it, and context parallelism does not know it. So the choice is made
here, by the rules of aten/src/ATen/native/transformers/cuda/sdp_utils.cpp. What the operators compute stands in
kernels.py.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch.backends import cuda as switches
from torch.nn.attention import SDPBackend

from vgpu.base import errors
from vgpu.base.patches import Patches
from vgpu.machine import profiles

_aten = torch.ops.aten
OPERATOR = _aten.scaled_dot_product_attention.default
_COMPOSITE = DispatchKey.CompositeImplicitAutograd
_LOW = (torch.float16, torch.bfloat16)
_OFTEN_FIRST = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


class _Call(NamedTuple):
    """The arguments of `scaled_dot_product_attention`."""

    query: Tensor
    key: Tensor
    value: Tensor
    attn_mask: Tensor | None = None
    dropout_p: float = 0.0
    is_causal: bool = False
    scale: float | None = None
    enable_gqa: bool = False


def install(patches: Patches) -> None:
    """Stand where autograd meets the operator, and where DTensor does: in inference mode autograd does not see it.

    What a virtual tensor does with it in inference mode stands in dispatch.py.
    """
    patches.kernel("scaled_dot_product_attention", attention, "AutogradCPU")
    patches.when_imported("torch.distributed.tensor", lambda module: _take_over_from_dtensor(patches, module))


def _take_over_from_dtensor(patches: Patches, module: Any) -> None:
    """Let DTensor ask here, too: by itself it would take the operator apart into that of the CPU."""
    handlers = module.DTensor._op_dispatcher._custom_op_handlers
    handlers[OPERATOR] = lambda operator, args, kwargs: attention(*args, **kwargs)
    patches.on_restore(lambda: handlers.pop(OPERATOR, None))


def attention(*args: Any, **kwargs: Any) -> Tensor:
    """`aten::scaled_dot_product_attention`, which takes the same arguments and returns (..., queries, width of values).

    PyTorch's own kernel computes it for tensors on the CPU, and raises for arguments that PyTorch refuses.

    Raises:
        RuntimeError: if the program has switched off every operator that could run, in PyTorch's words.
    """
    call = _Call(*args, **kwargs)
    if type(call.query) is Tensor or not _is_for_gpus(call):
        return OPERATOR._op_dk(_COMPOSITE, *args, **kwargs)
    if call.value.numel() == 0 or call.query.size(-2) == 0:
        return _of_nothing(call)
    return _RUN[choose(call)](call)


def _is_for_gpus(call: _Call) -> bool:
    """True for tensors on a virtual GPU that PyTorch's own checks of the arguments let through."""
    query, mask = call.query, call.attn_mask
    if not query.is_cuda or not 0 <= call.dropout_p <= 1:
        return False
    for x in call[:3]:
        if x.is_nested or x.is_sparse or x.dim() < 2 or x.device != query.device or x.dtype != query.dtype:
            return False
    if mask is None:
        return True
    return mask.dtype in (torch.bool, torch.float32, query.dtype)


def _of_nothing(call: _Call) -> Tensor:
    """Zeros, where there is no query or no value, with a gradient of zeros for queries, keys and values.

    The mask gets none, and nothing looks at its shape: see github.com/pytorch/pytorch/pull/175063 and 184914.
    """
    zeros = call.query.new_zeros((*call.query.shape[:-1], call.value.size(-1)))
    return zeros + (call.query.sum() + call.key.sum() + call.value.sum()) * 0


def choose(call: _Call) -> SDPBackend:
    """The operator that a GPU of this capability runs.

    Raises:
        RuntimeError: if the program has switched off every operator that could, in PyTorch's words.
    """
    reasons = {}
    for backend in _order():
        reasons[backend] = _OBSTACLES[backend](call)
        if reasons[backend] is None:
            return backend
    if not any(enabled() for enabled in _ENABLED.values()):
        raise RuntimeError(
            "No viable backend for scaled_dot_product_attention was found. This is likely due to turning off both the "
            "math kernel and the fused kernels."
        )
    for backend, name in _NAMES.items():
        errors.warn(f"{name} not used because: {_FROM}")
        errors.warn(f"{reasons[backend]} {_FROM}")
    raise RuntimeError("No available kernel. Aborting execution.")


def _order() -> list[SDPBackend]:
    """Which operator is tried first: what the program has set, or PyTorch's default for the capability."""
    order = [SDPBackend(number) for number in torch._C._get_sdp_priority_order()]
    known = [backend for backend in order if backend in _RUN]
    gpu = profiles.current()
    prefers_cudnn = os.environ.get("TORCH_CUDNN_SDPA_DEPRIORITIZED") != "1" and (gpu.major, gpu.minor) == (9, 0)
    if prefers_cudnn and known[:3] == _OFTEN_FIRST:
        known.insert(0, SDPBackend.CUDNN_ATTENTION)
    return known


_FROM = "(Triggered internally at /pytorch/aten/src/ATen/native/transformers/cuda/sdp_utils.cpp.)"
_TO_BROADCAST = (
    " instead. To broadcast dense inputs, try using unsqueeze and expand_to before passing them into the kernel."
)
_IN_CPP = {
    torch.float16: "c10::Half",
    torch.bfloat16: "c10::BFloat16",
    torch.float32: "float",
    torch.float64: "double",
    torch.int64: "long",
    torch.int32: "int",
}


def _no_math(call: _Call) -> str | None:
    return None if switches.math_sdp_enabled() else "The math backend has been runtime disabled."


def _no_fused_kernel(call: _Call, takes_groups: bool = True) -> str | None:
    """What keeps every fused kernel from running, or None.

    `takes_groups` is False for the one that wants as many heads of keys as of queries.
    """
    q, k, v = call[:3]
    if not q.dim() == k.dim() == v.dim() == 4:
        return (
            f"All fused kernels requires query, key and value to be 4 dimensional, but got Query dim: {q.dim()}, "
            f"Key dim: {k.dim()}, Value dim: {v.dim()} instead."
        )
    sizes = [list(x.shape) for x in (q, k, v)]
    if not q.size(0) == k.size(0) == v.size(0):
        return (
            "For dense inputs, both fused kernels require query, key and value to have the same batch_size. "
            f"Query.sizes(): {sizes[0]}, Key.sizes(): {sizes[1]}, Value.sizes(): {sizes[2]}{_TO_BROADCAST}"
        )
    grouped = call.enable_gqa and takes_groups and k.size(1) == v.size(1)
    if grouped and q.size(1) % max(k.size(1), 1):
        return (
            "The number of heads in key/value must divide number of heads in query.Got input Key sizes(): "
            f"{sizes[1]}, Value sizes(): {sizes[2]}, Query sizes(): {sizes[0]} instead."
        )
    if not (grouped or q.size(1) == k.size(1) == v.size(1)):
        return (
            "For dense input, both fused kernels require query, key and value to have the same num_heads. "
            f"Query.sizes(): {sizes[0]}, Key sizes(): {sizes[1]}, Value sizes(): {sizes[2]}{_TO_BROADCAST}"
        )
    if any(x.stride(-1) != 1 and x.size(-1) != 1 for x in (q, k, v)):
        return (
            "All fused kernels require the last dimension of the input to have stride 1. Got Query.stride(-1): "
            f"{q.stride(-1)}, Key.stride(-1): {k.stride(-1)}, Value.stride(-1): {v.stride(-1)} instead."
        )
    if call.attn_mask is not None and call.attn_mask.stride(-1) != 1:
        return (
            "All fused kernels require the last dimension of the input to have stride 1. Got attn_mask.stride(-1): "
            f"{call.attn_mask.stride(-1)} instead."
        )
    return None


def _wrong_dtype(call: _Call, *allowed: torch.dtype) -> str | None:
    if call.query.dtype in allowed:
        return None
    names = ", ".join(errors.LEGACY_NAMES[dtype] for dtype in allowed)
    given = _IN_CPP.get(call.query.dtype, str(call.query.dtype))
    return (
        f"Expected query, key and value to all be of dtype: {{{names}}}. Got Query dtype: {given}, Key dtype: {given}, "
        f"and Value dtype: {given} instead."
    )


def _low_precision() -> tuple[torch.dtype, ...]:
    return _LOW if profiles.current().major >= 8 else _LOW[:1]


def _no_flash(call: _Call) -> str | None:
    gpu, (q, k, v) = profiles.current(), call[:3]
    if not switches.flash_sdp_enabled():
        return "Flash attention has been runtime disabled."
    if call.attn_mask is not None:
        return "Flash Attention does not support non-null attn_mask."
    if gpu.major < 8:
        return (
            "Flash attention only supports gpu architectures in the range [sm80, sm121]. Attempting to run on a "
            f"sm {gpu.major}.{gpu.minor} gpu."
        )
    if not (q.size(-1) == k.size(-1) == v.size(-1) <= 256):
        return (
            "Flash attention requires q,k,v to have the same last dimension and to be less than or equal to 256. Got "
            f"Query.size(-1): {q.size(-1)}, Key.size(-1): {k.size(-1)}, Value.size(-1): {v.size(-1)} instead."
        )
    if call.is_causal and q.dim() > 2 and q.size(-2) != k.size(-2):
        return (
            "Flash attention does not support the is_causal flag when seqlen_q != seqlen_k. Got seqlen_q: "
            f"{q.size(-2)} seqlen_k: {k.size(-2)}."
        )
    if gpu.major == 8 and gpu.minor >= 6 and _trains(call):
        width = q.size(-1)
        if 192 < width <= 224 or (width > 224 and call.dropout_p > 0):
            return (
                "Flash attention currently doesn't support training with head_dim in (192, 224] or (head_dim in "
                "(224, 256] and dropout > 0.0) on SM86-SM89 or SM120-SM121. Attempting to run with dropout set to: "
                f"{call.dropout_p} and head_dim: {width} on a sm {gpu.major}.{gpu.minor} gpu."
            )
    return _wrong_dtype(call, *_low_precision()) or _no_fused_kernel(call)


def _no_efficient(call: _Call) -> str | None:
    gpu, (q, k, v) = profiles.current(), call[:3]
    if not switches.mem_efficient_sdp_enabled():
        return "Memory Efficient attention has been runtime disabled."
    low = call.query.dtype in _LOW
    multiple = (8 if low else 4) if gpu.major >= 8 else (8 if low else 1)
    if q.size(-1) != k.size(-1) or any(x.size(-1) == 0 or x.size(-1) % multiple for x in (q, v)):
        return (
            f"Mem efficient attention requires last dimension of inputs to be divisible by {multiple}. Got "
            f"Query.size(-1): {q.size(-1)}, Key.size(-1): {k.size(-1)}, Value.size(-1): {v.size(-1)} instead."
        )
    allowed = (torch.float16, torch.float32, torch.bfloat16) if gpu.major >= 8 else (torch.float16, torch.float32)
    return _wrong_dtype(call, *allowed) or _no_fused_kernel(call, takes_groups=False)


def _no_cudnn(call: _Call) -> str | None:
    gpu = profiles.current()
    if not switches.cudnn_sdp_enabled():
        return "cuDNN attention has been runtime disabled."
    if torch.are_deterministic_algorithms_enabled() and not torch.is_deterministic_algorithms_warn_only_enabled():
        return "cuDNN SDPA is not deterministic."
    if gpu.major < 8:
        return (
            "cuDNN MHA only supports gpu architectures in the range [sm80, sm121]. Attempting to run on a "
            f"sm {gpu.major}.{gpu.minor} gpu."
        )
    if (call.dropout_p * 16) % 1:
        return "cuDNN dropout probability resolution is limited to 1/16."
    return (
        _wrong_dtype(call, *_low_precision())
        or _no_fused_kernel(call)
        or _wrong_mask_for_cudnn(call)
        or _wrong_sizes_for_cudnn(call)
    )


def _wrong_mask_for_cudnn(call: _Call) -> str | None:
    """What keeps cuDNN from adding the mask: it has no gradient for one, and wants two dimensions or four."""
    mask = call.attn_mask
    if mask is None:
        return None
    if mask.requires_grad:
        return "cuDNN attention has no gradient for attn_mask."
    whole = (call.query.size(0), call.query.size(1), call.query.size(2), call.key.size(2))
    fits = all(size in (1, wanted) for size, wanted in zip(reversed(mask.shape), reversed(whole), strict=False))
    if mask.dim() in (2, 4) and fits:
        return None
    return (
        "Please use the following attn mask shapes: 2d - ({Q_seq_len, 1}  x {KV_seq_len, 1}); "
        "4d - ({Batch, 1} x {Num_heads, 1} x {Q_seq_len, 1}  x {KV_seq_len, 1})"
    )


def _wrong_sizes_for_cudnn(call: _Call) -> str | None:
    """What keeps cuDNN from working on heads of this width and sequences of this length."""
    gpu = profiles.current()
    of_queries, of_values = call.query.size(-1), call.value.size(-1)
    widest = 256 if (gpu.major, gpu.minor) == (9, 0) else 128
    if max(of_queries, of_values) > widest:
        return f"head_dim should be no more than {widest}"
    if of_queries % 8 or of_values % 8:
        return "head_dim should be a multiple of 8"
    if call.key.size(-2) == 1:
        return "cudnn SDPA does not support key/value sequence length 1."
    if call.query.size(-2) == 1 and call.dropout_p:
        return "cudnn SDPA does not support query sequence length 1 with dropout."
    wide = max(of_queries, of_values) > 128
    if wide and _trains(call) and (of_queries, of_values) not in ((192, 128), (256, 256)):
        return (
            "cuDNN SDPA on SM 9.0/10.x does not support backward with these head dimensions. Got d_qk: "
            f"{of_queries}, d_v: {of_values}"
        )
    return None


def _flash(call: _Call) -> Tensor:
    q, k, v = call[:3]
    return _aten._scaled_dot_product_flash_attention(q, k, v, call.dropout_p, call.is_causal, scale=call.scale)[0]


def _efficient(call: _Call) -> Tensor:
    q, k, v = call[:3]
    return _aten._scaled_dot_product_efficient_attention(
        q, k, v, _bias(call), _trains(call), call.dropout_p, call.is_causal, scale=call.scale
    )[0]


def _cudnn(call: _Call) -> Tensor:
    q, k, v = call[:3]
    return _aten._scaled_dot_product_cudnn_attention(
        q, k, v, _bias(call), _trains(call), call.dropout_p, call.is_causal, False, scale=call.scale
    )[0]


def _math(call: _Call) -> Tensor:
    mask = call.attn_mask
    if mask is not None and mask.dtype is torch.bool:
        mask = _as_numbers(mask, call.query.dtype)
    if mask is not None:
        _check_that_it_fits(mask, call)
    return _aten._scaled_dot_product_attention_math(
        *call[:3], mask, call.dropout_p, call.is_causal, None, scale=call.scale, enable_gqa=call.enable_gqa
    )[0]


def _check_that_it_fits(mask: Tensor, call: _Call) -> None:
    """Raise RuntimeError for a mask that is larger than the scores.

    A GPU adds the mask to the scores in place, which refuses it. To tensors of a subclass, such as virtual ones,
    PyTorch adds it out of place, which makes the scores larger.
    """
    q, k = call.query, call.key
    try:
        heads = q.shape[:-2] if call.enable_gqa else torch.broadcast_shapes(q.shape[:-2], k.shape[:-2])
        scores = [*heads, q.size(-2), k.size(-2)]
        whole = list(torch.broadcast_shapes(scores, mask.shape))
    except RuntimeError:
        return  # the operator itself says what does not fit
    if whole != scores:
        raise RuntimeError(f"output with shape {scores} doesn't match the broadcast shape {whole}")


def _trains(call: _Call) -> bool:
    """Whether a backward may come: it needs the sums of the softmax, and not every kernel has one."""
    return torch.is_grad_enabled() and any(isinstance(x, Tensor) and x.requires_grad for x in call[:4])


def _bias(call: _Call) -> Tensor | None:
    """The mask as numbers that are added to the scores, one for each of them."""
    mask, q = call.attn_mask, call.query
    if mask is None:
        return None
    if mask.dtype is torch.bool:
        mask = _as_numbers(mask, q.dtype)
    return mask.expand(q.size(0), q.size(1), q.size(2), call.key.size(2))


def _as_numbers(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """0 where the mask is True, minus infinity elsewhere."""
    return torch.zeros_like(mask, dtype=dtype).masked_fill(mask.logical_not(), float("-inf"))


_OBSTACLES = {
    SDPBackend.FLASH_ATTENTION: _no_flash,
    SDPBackend.EFFICIENT_ATTENTION: _no_efficient,
    SDPBackend.CUDNN_ATTENTION: _no_cudnn,
    SDPBackend.MATH: _no_math,
}
_ENABLED = {
    SDPBackend.FLASH_ATTENTION: switches.flash_sdp_enabled,
    SDPBackend.EFFICIENT_ATTENTION: switches.mem_efficient_sdp_enabled,
    SDPBackend.CUDNN_ATTENTION: switches.cudnn_sdp_enabled,
    SDPBackend.MATH: switches.math_sdp_enabled,
}
_NAMES = {
    SDPBackend.EFFICIENT_ATTENTION: "Memory efficient kernel",
    SDPBackend.FLASH_ATTENTION: "Flash attention kernel",
    SDPBackend.CUDNN_ATTENTION: "cuDNN attention kernel",
}
_RUN = {
    SDPBackend.FLASH_ATTENTION: _flash,
    SDPBackend.EFFICIENT_ATTENTION: _efficient,
    SDPBackend.CUDNN_ATTENTION: _cudnn,
    SDPBackend.MATH: _math,
}
