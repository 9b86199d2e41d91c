"""`torch.autocast("cuda")`: operators on virtual tensors run in the dtypes they run in on real GPUs.

PyTorch's own AutocastCUDA kernels are in every build, but leave alone what C++ takes for a CPU tensor. Kernels written
here stand in their place. Whether autocast is on remains PyTorch's per-thread state: a key that is included in a
thread's dispatch and excluded again by `set_autocast_enabled(False)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._C import DispatchKey, DispatchKeySet
from torch._C import _functorch as functorch
from torch.utils._pytree import tree_leaves

from vgpu.base.patches import Patches
from vgpu.tensors.tensor import is_virtual

_KEY = DispatchKey.AutocastCUDA
_KEYS = DispatchKeySet(_KEY)

# What autocast does with an operator. All others that have a kernel for the key compute in float32.
_POLICY = {
    # "CUDA Ops that can autocast to float16" in torch.amp's documentation, with the internal operators in which the
    # functions named there end: convolutions,
    "_convolution": "lower",
    "conv1d": "lower",
    "conv2d": "lower",
    "conv3d": "lower",
    "conv_tbc": "lower",
    "conv_transpose1d": "lower",
    "conv_transpose2d": "lower",
    "conv_transpose3d": "lower",
    "convolution": "lower",
    "cudnn_convolution": "lower",
    "cudnn_convolution_transpose": "lower",
    # products of matrices,
    "addbmm": "lower",
    "addmm": "lower",
    "addmv": "lower",
    "addr": "lower",
    "baddbmm": "lower",
    "bmm": "lower",
    "chain_matmul": "lower",
    "einsum": "lower",
    "linalg_multi_dot": "lower",
    "linalg_vecdot": "lower",
    "linear": "lower",
    "matmul": "lower",
    "mm": "lower",
    "mv": "lower",
    # and layers that are made of them.
    "_cudnn_rnn": "lower",
    "_scaled_dot_product_flash_attention": "lower",
    "_thnn_fused_gru_cell": "lower",
    "_thnn_fused_lstm_cell": "lower",
    "gru_cell": "lower",
    "lstm_cell": "lower",
    "prelu": "lower",
    "rnn_relu_cell": "lower",
    "rnn_tanh_cell": "lower",
    "scaled_dot_product_attention": "lower",
    # "CUDA Ops that promote to the widest input type".
    "addcdiv": "widest",
    "addcmul": "widest",
    "atan2": "widest",
    "bilinear": "widest",
    "cross": "widest",
    "dot": "widest",
    "grid_sampler": "widest",
    "index_put": "widest",
    "scatter_add": "widest",
    "tensordot": "widest",
    "vdot": "widest",
    # Sums and norms: they add up in float32, unless the caller has asked for a dtype.
    "cumprod": "sets dtype",
    "cumsum": "sets dtype",
    "linalg_matrix_norm": "sets dtype",
    "linalg_vector_norm": "sets dtype",
    "log_softmax": "sets dtype",
    "prod": "sets dtype",
    "softmax": "sets dtype",
    "sum": "sets dtype",
    # Refused, for its gradient does not fit into float16.
    "binary_cross_entropy": "banned",
}
_BANNED = (
    "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
    "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
    "In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits\n"
    "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\nsafe to autocast."
)

_cache: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # leaf weights and their copies in the lower precision


def install(patches: Patches) -> None:
    """Replace the kernels, and the two functions through which autocast is switched."""
    for qualified in torch._C._dispatch_get_registrations_for_dispatch_key("AutocastCUDA"):
        namespace, _, name = qualified.partition("::")
        if namespace == "aten":
            patches.kernel(name, _kernel(name), "AutocastCUDA")
    set_enabled = torch.set_autocast_enabled
    clear = torch.clear_autocast_cache

    def set_autocast_enabled(*args: Any) -> None:
        set_enabled(*args)
        if args[0] == "cuda" or args[0] is True:  # the older form names no device and means CUDA
            torch._C._dispatch_tls_set_dispatch_key_included(_KEY, True)

    def clear_autocast_cache() -> None:
        _cache.clear()
        clear()

    patches.functions(torch, "", set_autocast_enabled, clear_autocast_cache)


def _kernel(qualified: str) -> Callable:
    name, _, overload = qualified.partition(".")
    op = getattr(getattr(torch.ops.aten, name), overload or "default")
    policy = _POLICY.get(name, "float32")

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(_KEYS):
            given = [leaf for leaf in tree_leaves((args, kwargs)) if _eligible(leaf)]
            if policy == "sets dtype" and given:
                args, kwargs = _with_dtype(op, args, kwargs)
            elif given:
                args, kwargs = _converted(policy, args, kwargs, given)
            return op(*args, **kwargs)

    return kernel


def in_float16(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """Call a layer of cuDNN's, which runs in float16 under autocast, whatever the dtype of autocast is."""
    if not torch.is_autocast_enabled("cuda"):
        return function(*args, **kwargs)
    with torch._C._ExcludeDispatchKeyGuard(_KEYS):
        return function(*_cast(args, torch.float16), **{k: _cast(v, torch.float16) for k, v in kwargs.items()})


def in_float32(function: Callable, *args: Any) -> Any:
    """Call an operator that autocast runs in float32."""
    with torch._C._ExcludeDispatchKeyGuard(_KEYS):
        return function(*_cast(args, torch.float32))


def _converted(policy: str, args: tuple, kwargs: dict, given: list[torch.Tensor]) -> tuple[tuple, dict]:
    """An operator's arguments under autocast, of which `given` may be cast."""
    if policy == "banned":
        raise RuntimeError(_BANNED)
    dtype = torch.float32
    if policy == "lower":
        dtype = torch.get_autocast_dtype("cuda")
    elif policy == "widest":
        dtype = _widest(given, torch.get_autocast_dtype("cuda"))
    return _cast(args, dtype), {k: _cast(v, dtype) for k, v in kwargs.items()}


def _widest(given: list[torch.Tensor], lower: torch.dtype) -> torch.dtype:
    for tensor in given:
        if tensor.dtype is torch.float32:
            return torch.float32
        if tensor.dtype is not lower:  # half precision, of the kind that autocast does not use now
            raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize")
    return lower


def _with_dtype(op: Any, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The arguments with float32 for a dtype that was left open. Cross-entropy, from C++, gives it by position."""
    place = [argument.name for argument in op._schema.arguments].index("dtype")
    chosen = kwargs.get("dtype") or next(iter(args[place:]), None)
    return args[:place], {**kwargs, "dtype": chosen or torch.float32}


def _eligible(value: object) -> bool:
    # A wrapper on a GPU is cast, too, as DTensor is one: C++ takes it for a CPU tensor as it does what is inside.
    if not isinstance(value, torch.Tensor):
        return False
    on_gpu = is_virtual(value) or (value.is_cuda if type(value) is not torch.Tensor else _wraps_virtual(value))
    return on_gpu and value.is_floating_point() and value.dtype is not torch.float64


def _wraps_virtual(value: torch.Tensor) -> bool:
    """Whether functorch has wrapped a virtual tensor, once for each `grad` and `vmap`, in a plain tensor."""
    while functorch.is_functorch_wrapped_tensor(value):
        value = functorch.get_unwrapped(value)
    return is_virtual(value)


def _cast(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(v, dtype) for v in value)
    if not _eligible(value) or value.dtype is dtype:
        return value
    cacheable = value.dtype is torch.float32 and value.requires_grad and value.is_leaf and value._base is None
    if not (cacheable and dtype is not torch.float32 and torch.is_autocast_cache_enabled()):
        return value.to(dtype)
    known = _cache.get(id(value))
    if known is not None and known[1].dtype is dtype:
        return known[1]
    if torch.is_inference_mode_enabled():
        return value.to(dtype)  # a copy that no graph can use is not kept
    # Made with a graph also under no_grad: a forward pass that trains may use it later in the same block.
    with torch.enable_grad():
        copy = value.to(dtype)
    _cache[id(value)] = value, copy
    return copy
