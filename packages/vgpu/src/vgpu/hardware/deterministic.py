"""The operators that have no deterministic kernel on CUDA: `torch.use_deterministic_algorithms(True)` refuses them.

Recorded on a GPU (tests/hardware), or listed in the documentation of that function; the names are those of the errors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

_MAXIMUM = 2  # the mode of an embedding bag

# By operator: the name that the error gives it.
_NAMES = {
    "_adaptive_avg_pool2d_backward": "adaptive_avg_pool2d_backward_cuda",
    "_adaptive_avg_pool3d_backward": "adaptive_avg_pool3d_backward_cuda",
    "_ctc_loss_backward": "ctc_loss_backward_gpu",
    "_embedding_bag_backward": "embedding_bag_backward_cuda_max",
    "_embedding_bag_dense_backward": "embedding_bag_backward_cuda_max",
    "_roi_align_backward": "roi_align_backward_kernel",
    "_roi_pool_backward": "roi_pool_backward_kernel",
    "_upsample_bicubic2d_aa_backward": "upsample_bicubic2d_aa_backward_out_cuda",
    "_upsample_bilinear2d_aa_backward": "upsample_bilinear2d_aa_backward_out_cuda",
    "adaptive_max_pool2d_backward": "adaptive_max_pool2d_backward_cuda",
    "avg_pool3d_backward": "avg_pool3d_backward_cuda",
    "bincount": "_bincount_cuda",
    "fractional_max_pool2d_backward": "fractional_max_pool2d_backward_cuda",
    "fractional_max_pool3d_backward": "fractional_max_pool3d_backward_cuda",
    "grid_sampler_2d_backward": "grid_sampler_2d_backward_cuda",
    "grid_sampler_3d_backward": "grid_sampler_3d_backward_cuda",
    "histc": "_histc_cuda with floating point input",
    "index_reduce": "index_reduce_cuda",
    "max_pool3d_with_indices_backward": "max_pool3d_with_indices_backward_cuda",
    "median": "median CUDA with indices output",
    "nanmedian": "median CUDA with indices output",
    "nll_loss2d_forward": "nll_loss2d_forward_out_cuda_template",
    "put": "put_",
    "reflection_pad1d_backward": "reflection_pad1d_backward_out_cuda",
    "reflection_pad3d_backward": "reflection_pad3d_backward_out_cuda",
    "scatter_reduce": "scatter_reduce_cuda_prod_",
    "upsample_bicubic2d_backward": "upsample_bicubic2d_backward_out_cuda",
    "upsample_linear1d_backward": "upsample_linear1d_backward_out_cuda",
    "upsample_trilinear3d_backward": "upsample_trilinear3d_backward_out_cuda",
}
# These have one for some arguments.
_ONLY_IF: dict[str, Callable[[dict[str, Any]], bool]] = {
    "_embedding_bag_backward": lambda given: given["mode"] == _MAXIMUM,
    "_embedding_bag_dense_backward": lambda given: given["mode"] == _MAXIMUM,
    "bincount": lambda given: given.get("weights") is not None,
    "histc": lambda given: given["self"].is_floating_point(),
    "median": lambda given: "dim" in given,
    "nanmedian": lambda given: "dim" in given,
    "scatter_reduce": lambda given: given["reduce"] == "prod",
}
# These go through `index_put_` when a deterministic result is asked for, and then want a dimension.
_BY_INDEX = ("index_add", "index_copy")

_HOW_TO_GO_ON = (
    " You can turn off determinism just for this operation, or you can use the 'warn_only=True' option, if that's "
    "acceptable for your application. You can also file an issue at"
)

CHECKED = frozenset((*_NAMES, *_BY_INDEX))


def check(operator: str, given: dict[str, Any]) -> None:
    """Raise, or warn, as a GPU does for an operator of CHECKED while deterministic algorithms are asked for.

    Args:
        operator: its name, without namespace, overload and the underscore of an in-place form.
        given: its arguments by name.
    """
    if operator in _BY_INDEX:
        if not given["self"].dim():
            raise IndexError("too many indices for tensor of dimension 0 (got 1)")
        return
    condition = _ONLY_IF.get(operator)
    if condition is not None and not condition(given):
        return
    mode, more = "True", _HOW_TO_GO_ON
    if torch.is_deterministic_algorithms_warn_only_enabled():
        mode, more = "True, warn_only=True", " You can file an issue at"
    text = (
        f"{_NAMES[operator]} does not have a deterministic implementation, but you set "
        f"'torch.use_deterministic_algorithms({mode})'.{more} https://github.com/pytorch/pytorch/issues to help us "
        "prioritize adding deterministic support for this operation."
    )
    if torch.is_deterministic_algorithms_warn_only_enabled():
        warnings.warn(text, stacklevel=2)
    else:
        raise RuntimeError(text)
